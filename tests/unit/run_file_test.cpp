// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/run_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "results/reader/reader.hpp"
#include "tests/unit/results_samples.hpp"

namespace isoscale::runner {
namespace {

namespace samples = results::samples;
using testing::HasSubstr;

/// A run, each point of which is a part of its own.
class MovedRun : public testing::Test {
 protected:
  [[nodiscard]] std::vector<int> indices_moved() const {
    std::vector<int> result;
    for (const auto& point : results::read_run(run_.path()).points) result.push_back(point.index);
    return result;
  }

  samples::Directory directory_, fallback_;
  std::filesystem::path file_ = directory_.path() / "run.h5";
  RunFile run_{{file_, samples::header(), settings::IfExists::refuse, units::Bytes{1}},
               file_,
               samples::header(),
               fallback_.path()};
};

TEST_F(MovedRun, TakesPartsAlong) {
  run_.commit(samples::point(0));
  run_.commit(samples::point(1));
  std::filesystem::remove(file_);
  std::ofstream{file_} << "somebody else's";
  run_.commit(samples::point(2));
  EXPECT_EQ(run_.path(), fallback_.path() / "run.h5");
  EXPECT_THAT(indices_moved(), testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(run_.moved(), HasSubstr("has 2 of its points"));
}

TEST_F(MovedRun, LeavesOutOnlyPartsThatAreGone) {
  run_.commit(samples::point(0));
  run_.commit(samples::point(1));
  run_.commit(samples::point(2));
  std::filesystem::remove(directory_.path() / "run.part0001.h5");
  std::filesystem::remove(file_);
  std::ofstream{file_} << "somebody else's";
  run_.commit(samples::point(3));
  EXPECT_THAT(indices_moved(), testing::ElementsAre(0, 2, 3));
}

}  // namespace
}  // namespace isoscale::runner
