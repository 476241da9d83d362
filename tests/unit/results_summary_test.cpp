// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/reader/summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "results/hdf5/integrity.hpp"
#include "tests/unit/results_fixture.hpp"

namespace isoscale::results {
namespace {

class Summary : public RunFileTest {
 protected:
  Summary() {
    RunWriter writer = new_writer();
    writer.commit(samples::point(0));
    writer.commit(samples::skipped_point(1));
  }

  /// The stored summary is what the whole file gives.
  void expect_same() const {
    const std::optional<RunSummary> stored = read_summary(file());
    ASSERT_TRUE(stored);
    Confidences confidences;
    const RunSummary read = summary_of(read_run(file()), confidences);
    RunSummary without_parts = *stored;
    for (PointFigures& figures : without_parts.figures) figures.part_file.reset();
    EXPECT_EQ(summary_text(without_parts), summary_text(read));
  }
};

TEST_F(Summary, IsThatOfTheWholeFileAtEveryCommit) {
  expect_same();
  const RunData run = read_run(file());
  RunWriter writer = RunWriter::resume(file(), run, {1}, units::Bytes{1});
  expect_same();
  writer.commit(samples::point(2));
  expect_same();
  EXPECT_EQ(read_summary(file())->run.points.size(), 2U);
  EXPECT_EQ(read_summary(file())->figures[1].part_file, "run.part0002.h5");
  RunData last = run;
  last.complete = true;
  last.ended = "2026-01-02T03:05:00Z";
  writer.finish(last);
  expect_same();
  EXPECT_TRUE(read_summary(file())->run.complete);
  EXPECT_EQ(digest_state(file()), DigestState::right) << "which covers the summary, too";
}

TEST_F(Summary, IsNotUsedWhereAPartIsMissing) {
  RunWriter::resume(file(), read_run(file()), {}, units::Bytes{1}).commit(samples::point(2));
  ASSERT_TRUE(read_summary(file()));
  std::filesystem::remove(directory_.path() / "run.part0002.h5");
  EXPECT_FALSE(read_summary(file()));
}

TEST_F(Summary, IsGoneWhenAnotherProgramChangesTheFile) {
  change("", [](hdf5::Group& root) { root.set("later", 1.5); });
  EXPECT_FALSE(read_summary(file()));
  EXPECT_EQ(read_run(file()).points.size(), 2U);
}

TEST_F(Summary, IsNotUsedWhenDamaged) {
  const std::string whole = content();
  const std::size_t begin = whole.rfind("{\"created\"");
  ASSERT_NE(begin, std::string::npos);
  for (std::size_t at = begin; at < whole.size(); at += 7) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    put(changed);
    ASSERT_FALSE(read_summary(file())) << at;
  }
  put(std::string_view{whole}.substr(0, whole.size() - 1));
  EXPECT_FALSE(read_summary(file()));
  put(whole + ' ');
  EXPECT_FALSE(read_summary(file()));
  put("");
  EXPECT_FALSE(read_summary(file()));
  EXPECT_FALSE(read_summary(directory_.path()));
  EXPECT_FALSE(read_summary(directory_.path() / "absent"));
}

}  // namespace
}  // namespace isoscale::results
