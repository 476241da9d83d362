// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "results/writer/writer.hpp"
#include "tests/fault/failing_calls.hpp"
#include "tests/support/scratch_directory.hpp"
#include "tests/unit/results_samples.hpp"

namespace isoscale::results {
namespace {

/// False if a call failed, which only an error of ours may tell.
bool is_written(const std::filesystem::path& file) {
  try {
    RunWriter writer{file, samples::header(), settings::IfExists::overwrite};
    writer.commit(samples::point(0));
    RunData last = samples::header();
    last.complete = true;
    writer.finish(last);
    return true;
  } catch (const base::Error&) {
    return false;
  }
}

/// HDF5 1.10 crashes as the process ends where it closes a file that could not be closed before.
TEST(EndOfProcess, IsCleanAfterFilesThatCouldNotBeClosed) {
  const testing_support::ScratchDirectory directory;
  const auto file = directory.path() / "run.h5";
  fault::count();
  ASSERT_TRUE(is_written(file));
  fault::stop();
  constexpr int most = 12;
  int tried = 0;
  for (const auto& [call, count] : fault::calls()) {
    if (!call.starts_with("pwrite")) continue;
    for (int nth = 1; nth <= count; nth += 1 + (count - 1) / most) {
      ++tried;
      EXPECT_EXIT(
          {
            fault::fail({.call = call, .nth = nth, .error = ENOSPC});
            const bool written = is_written(file);
            fault::stop();
            std::exit(written ? 2 : 0);
          },
          testing::ExitedWithCode(0), "")
          << call << " " << nth;
    }
  }
  EXPECT_GE(tried, most / 2);
}

}  // namespace
}  // namespace isoscale::results
