// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <ostream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "tests/unit/results_fixture.hpp"

namespace isoscale::results {
namespace {

using settings::IfExists;
using testing::ElementsAre;

/// How points are spread over files.
struct Layout {
  std::string name;
  units::Bytes part_limit;
  bool has_parts = false;
};
void PrintTo(const Layout& value, std::ostream* out) { *out << value.name; }

class Resumed : public RunFileTest, public testing::WithParamInterface<Layout> {
 protected:
  /// A run that ended with points 0, 1 and 3.
  void write_earlier() const {
    RunWriter writer = new_writer(IfExists::refuse, GetParam().part_limit);
    for (const int index : {0, 1, 3}) writer.commit(samples::point(index));
    RunData end = samples::header();
    end.complete = true;
    end.ended = "2026-01-02T03:05:00Z";
    writer.finish(end);
  }
  [[nodiscard]] RunWriter resume(const std::set<int>& again) const {
    RunData earlier = read_run(file());
    earlier.warnings.emplace_back("resumed");
    return RunWriter::resume(file(), earlier, again, GetParam().part_limit);
  }
  [[nodiscard]] std::size_t parts() const { return directory_.names().size() - 1; }
};

TEST_P(Resumed, IsPartialWithoutThePointsThatComeAgain) {
  write_earlier();
  EXPECT_EQ(parts(), GetParam().has_parts ? 3U : 0U);
  const RunWriter writer = resume({1, 2});
  const RunData run = read_run(file());
  EXPECT_FALSE(run.complete);
  EXPECT_EQ(run.ended, "");
  EXPECT_EQ(run.warnings.back(), "resumed");
  EXPECT_THAT(indices(run), ElementsAre(0, 3));
}

TEST_P(Resumed, EndsAsIfItHadNotBeenInterrupted) {
  write_earlier();
  const RunData before = read_run(file());
  RunWriter writer = resume({1, 2});
  writer.commit(samples::point(2, 7));
  EXPECT_THAT(indices(read_run(file())), ElementsAre(0, 2, 3));
  writer.commit(samples::point(1, 5));
  EXPECT_THROW(writer.commit(samples::point(3)), base::Error);
  RunData end = samples::header();
  end.complete = true;
  writer.finish(end);
  const RunData run = read_run(file());
  EXPECT_TRUE(run.complete);
  EXPECT_EQ(run.id, before.id);
  EXPECT_THAT(indices(run), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(run.points[0].step_times, before.points[0].step_times);
  EXPECT_EQ(run.points[1].step_times.size(), samples::point(1, 5).step_times.size());
  EXPECT_EQ(parts(), GetParam().has_parts ? 4U : 0U);
}

TEST_P(Resumed, RemovesOldPartsWhenTheNewOnesAreNamed) {
  write_earlier();
  const std::size_t before = parts();
  RunWriter writer = resume({1, 2, 3});
  EXPECT_EQ(parts(), before);
  writer.commit(samples::point(1));
  EXPECT_EQ(parts(), before);
  writer.finish(samples::header());  // point 3 was not measured again
  EXPECT_THAT(indices(read_run(file())), ElementsAre(0, 1));
  EXPECT_EQ(parts(), GetParam().has_parts ? 2U : 0U);
}

TEST_P(Resumed, RemovesAPartThatAKilledLaunchDidNotName) {
  write_earlier();
  const auto part = directory_.path() / "run.part0002.h5";
  {
    RunWriter other{directory_.path() / "other.h5", samples::header(), IfExists::refuse,
                    units::Bytes{1}};
    other.commit(samples::point(2));
  }
  std::filesystem::rename(directory_.path() / "other.part0002.h5", part);
  std::filesystem::remove(directory_.path() / "other.h5");
  RunWriter writer = resume({2});
  EXPECT_FALSE(std::filesystem::exists(part));
  writer.commit(samples::point(2));
  EXPECT_THAT(indices(read_run(file())), ElementsAre(0, 1, 2, 3));
}

TEST_P(Resumed, KeepsWhatOnlyHasTheNameOfAPart) {
  write_earlier();
  std::ofstream{directory_.path() / "run.part0002.h5"} << "keep";
  RunData other = samples::header();
  other.id = "another";
  RunWriter{directory_.path() / "b.h5", other, IfExists::refuse, units::Bytes{1}}.commit(
      samples::point(7));
  std::filesystem::rename(directory_.path() / "b.part0007.h5",
                          directory_.path() / "run.part0007.h5");
  std::filesystem::remove(directory_.path() / "b.h5");
  testing::internal::CaptureStderr();
  RunWriter writer = resume({2});
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      testing::AllOf(testing::HasSubstr("run.part0002.h5"), testing::HasSubstr("run.part0007.h5"),
                     testing::HasSubstr("left as it is")));
  writer.commit(samples::point(2));
  writer.finish(samples::header());
  EXPECT_THAT(indices(read_run(file())), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(std::filesystem::file_size(directory_.path() / "run.part0002.h5"), 4U);
  EXPECT_TRUE(std::filesystem::exists(directory_.path() / "run.part0007.h5"));
  EXPECT_EQ(std::filesystem::exists(directory_.path() / "run.part0002-2.h5"), GetParam().has_parts);
}

TEST_P(Resumed, NeedsTheFile) {
  EXPECT_THROW((void)RunWriter::resume(file(), samples::header(), {}, GetParam().part_limit),
               base::Error);
  EXPECT_TRUE(directory_.names().empty());
}

INSTANTIATE_TEST_SUITE_P(Writers, Resumed,
                         testing::Values(Layout{"OneFile", default_part_limit, false},
                                         Layout{"WithParts", units::Bytes{1}, true}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace isoscale::results
