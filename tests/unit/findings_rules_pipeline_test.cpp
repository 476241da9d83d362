// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "findings_samples.hpp"

namespace isoscale::analysis {
namespace {

using samples::evidence;
using samples::find;
using samples::finding;
using samples::findings_of;
using samples::Script;
using testing::HasSubstr;

/// A pipeline without traces.
results::PointData pipeline(int stages, int microbatches, const char* schedule = "1f1b") {
  results::PointData point = samples::measured(0, {.pp = stages}, 80e-3);
  point.workload = "pp";
  point.options = {
      {"microbatches", std::to_string(microbatches)}, {"microbatch", "2"}, {"schedule", schedule}};
  return point;
}

TEST(FewMicrobatches, AreFoundWithTheNumberThatIsEnough) {
  const auto found = finding(pipeline(4, 8), "few-microbatches");
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->severity.value(), 3.0 / 11);
  EXPECT_EQ(found->sentence,
            "4 ranks: 8 microbatches on 4 stages: the 1f1b schedule alone leaves 27.3% idle");
  // 27 leave 3/30.
  EXPECT_THAT(found->next_step, HasSubstr("--set microbatches=27 leaves 10.0%"));
}

TEST(FewMicrobatches, AreNoneWhereTheyAreEnough) {
  for (int stages = 2; stages <= 64; ++stages) {
    const auto enough = findings_of(pipeline(stages, 9 * (stages - 1)));
    EXPECT_EQ(find(enough, "few-microbatches"), nullptr) << stages;
    const auto all = findings_of(pipeline(stages, 9 * (stages - 1) - 1));
    ASSERT_NE(find(all, "few-microbatches"), nullptr) << stages;
    EXPECT_EQ(evidence(*find(all, "few-microbatches"), "enough"), 9 * (stages - 1));
  }
}

TEST(FewMicrobatches, AreCountedByTheFormulaOfTheSchedule) {
  // (p-1)(F+B-W)/(3m) = 3/24 of the work: 1/9 of the step; 9 microbatches leave 3/30.
  const auto found = finding(pipeline(4, 8, "zb-h1"), "few-microbatches");
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->severity.value(), 1.0 / 9);
  EXPECT_EQ(evidence(*found, "enough"), 9);
  // Two virtual stages halve the bubble: 3/16 of the work; 14 are enough, in turns of 4 they
  // are 16.
  auto turns = pipeline(4, 8, "interleaved");
  turns.options["v"] = "2";
  const auto interleaved = findings_of(turns);
  ASSERT_NE(find(interleaved, "few-microbatches"), nullptr);
  EXPECT_DOUBLE_EQ(find(interleaved, "few-microbatches")->severity.value(), 3.0 / 19);
  EXPECT_EQ(evidence(*find(interleaved, "few-microbatches"), "enough"), 16);
}

TEST(FewMicrobatches, AreNoneOfUnknownSchedulesOrOfOneStage) {
  EXPECT_FALSE(finding(pipeline(4, 8, "dualpipe"), "few-microbatches"));
  EXPECT_FALSE(finding(pipeline(1, 1), "few-microbatches"));
  EXPECT_TRUE(finding(pipeline(4, 8, "gpipe"), "few-microbatches"));
}

/// Two stages and four messages, then one back; the first computes for `first` before each and
/// after the last, the second for `second` after each; nanoseconds, and a network that takes none.
results::PointData two_stages(int first, int second) {
  constexpr int messages = 4;
  Script front, back;
  samples::Spans of_front, of_back;
  int sent = 0, done = 0;  // when the front had sent the last message, the back computed it
  for (int i = 0; i < messages; ++i) {
    front.compute().send(1);
    back.receive(-1).compute();
    const int ready = sent + first, met = std::max(ready, done);
    of_front.insert(of_front.end(), {{sent, ready}, {ready, met}});
    of_back.insert(of_back.end(), {{done, met}, {met, met + second}});
    sent = met;
    done = met + second;
  }
  front.receive(1).compute();
  back.send(-1);
  of_front.insert(of_front.end(), {{sent, done}, {done, done + first}});
  of_back.emplace_back(done, done);
  results::PointData point = pipeline(2, 9);
  samples::set_trace(point, samples::point({.pp = 2}, {front, back},
                                           {{samples::trace(0, {0, done + first}, of_front),
                                             samples::trace(1, {0, done}, of_back)}}));
  for (program::Outline& outline : point.outline.outlines) {
    for (program::OutlineOp& op : outline.ops) {
      if (op.kind == program::OpKind::gemm) op.flop = 1e3;
    }
  }
  samples::add_traced_steps(point, 80e-3, 1.0);
  return point;
}

TEST(BubbleBeyondSchedule, IsFoundOfUnequalStages) {
  EXPECT_FALSE(finding(two_stages(100, 100), "bubble-beyond-schedule"));
  const results::PointData unequal = two_stages(50, 200);
  const BreakdownResult parts = breakdown(unequal);
  const auto found = finding(unequal, "bubble-beyond-schedule");
  ASSERT_TRUE(found) << parts.missing;
  ASSERT_TRUE(parts.mean && parts.schedule_bubble);
  EXPECT_GT(found->severity.value(), 0.1);
  const double excess = (parts.mean->bubble - *parts.schedule_bubble) / parts.mean->step;
  EXPECT_NEAR(found->severity.value(), excess, 1e-12);
  EXPECT_THAT(found->sentence, HasSubstr("stages may be unequal"));
}

}  // namespace
}  // namespace isoscale::analysis
