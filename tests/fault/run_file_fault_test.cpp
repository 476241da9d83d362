// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "results/reader.hpp"
#include "runner/run_file.hpp"
#include "tests/fault/every_call.hpp"
#include "tests/fault/samples.hpp"
#include "tests/unit/results_samples.hpp"

/// A call fails while a launch writes its file: every point is in the file, or in the fallback, and
/// the program says which.
namespace isoscale::runner {
namespace {

namespace fs = std::filesystem;
namespace samples = results::samples;
using fault::Failing;
using fault::Times;

/// In memory where there is such a place: flushing files to a disk takes its time.
fs::path quick_place() {
  return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : fs::temp_directory_path();
}

class FallbackFaults : public testing::Test {
 protected:
  void prepare() {
    file_.reset();
    directory_ = std::make_unique<samples::Directory>(quick_place());
    fallback_ = std::make_unique<samples::Directory>(quick_place());
    const fs::path path = directory_->path() / "run.h5";
    const results::RunData header = samples::header();
    file_.emplace(results::RunWriter{path, header, config::IfExists::refuse}, path, header,
                  fallback_->path());
    said_.clear();
  }
  void act() {
    try {
      for (const int index : {0, 1, 2}) file_->commit(samples::point(index));
      results::RunData last = samples::header();
      last.complete = true;
      file_->finish(last);
    } catch (const base::Error& error) {
      said_ = error.what();
    }
  }
  /// One failure is what the fallback is there for.
  std::string lacks() {
    const results::RunData run = results::read_run(file_->path());
    std::string problems;
    for (const int index : {0, 1, 2}) {
      const auto found = std::ranges::find(run.points, index, &results::PointData::index);
      if (found == run.points.end() || !fault::same(*found, samples::point(index))) {
        problems += fmt::format("point {} is missing or differs. ", index);
      }
    }
    if (!run.complete) problems += "the end is missing. ";
    const bool is_elsewhere = file_->path().parent_path() == fallback_->path();
    if (is_elsewhere == file_->moved().empty()) problems += "what is said of the place is wrong. ";
    return problems;
  }
  std::string check(Times times) {
    std::string problems;
    if (times == Times::once) {
      if (!said_.empty()) problems = "the fallback was of no use. ";
      problems += lacks();
    } else if (said_.empty()) {
      problems = lacks();  // it did without
    } else if (said_.find("; the fallback ") == said_.npos) {
      problems = "it is not said that neither can be written. ";
    }
    file_.reset();
    directory_.reset();
    fallback_.reset();
    return problems.empty() ? problems : fmt::format("{}Said: '{}'", problems, said_);
  }
  void fail_each(Times times) {
    const fault::Work work{.prepare = [&] { prepare(); },
                           .act = [&] { act(); },
                           .check = [&] { return check(times); }};
    constexpr int most = 1;
    prepare();
    act();
    std::vector<Failing> plan = fault::plan(work, most);
    ASSERT_EQ(said_, "");
    for (Failing& failing : plan) {
      failing.times = times;
      const std::string problems = fault::done_with(failing, work);
      EXPECT_TRUE(problems.empty()) << fault::to_text(failing) << ": " << problems;
    }
    std::printf("%zu calls failed in turn\n", plan.size());
  }

  std::unique_ptr<samples::Directory> directory_, fallback_;
  std::optional<RunFile> file_;
  std::string said_;
};

TEST_F(FallbackFaults, Once) { fail_each(Times::once); }

TEST_F(FallbackFaults, FromThenOn) { fail_each(Times::ever); }

}  // namespace
}  // namespace isoscale::runner
