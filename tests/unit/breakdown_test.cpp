// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/breakdown.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "analysis/breakdown/traced_steps.hpp"
#include "run_samples.hpp"

namespace isoscale::analysis {
namespace {

using mesh::Axis;
using samples::Script;
using samples::trace;
using testing::HasSubstr;

/// The test expects these values of one rank, in nanoseconds.
struct Expected {
  double compute = 0, copies = 0, transfer = 0, wait = 0, bubble = 0, gap = 0, other = 0;
  double step = 0, hidden = 0;
};

void expect_breakdown(const breakdown::Breakdown& actual, const Expected& expected,
                      const std::string& what) {
  SCOPED_TRACE(what);
  constexpr double tolerance = 1e-6;  // of a nanosecond
  EXPECT_NEAR(actual.compute * 1e9, expected.compute, tolerance);
  EXPECT_NEAR(actual.copies * 1e9, expected.copies, tolerance);
  EXPECT_NEAR(actual.transfer * 1e9, expected.transfer, tolerance);
  EXPECT_NEAR(actual.wait * 1e9, expected.wait, tolerance);
  EXPECT_NEAR(actual.bubble * 1e9, expected.bubble, tolerance);
  EXPECT_NEAR(actual.gap * 1e9, expected.gap, tolerance);
  EXPECT_NEAR(actual.other * 1e9, expected.other, tolerance);
  EXPECT_NEAR(actual.step * 1e9, expected.step, tolerance);
  EXPECT_NEAR(actual.hidden_communication * 1e9, expected.hidden, tolerance);
  EXPECT_NEAR((actual.compute + actual.copies + actual.transfer + actual.wait + actual.bubble +
               actual.gap + actual.other) *
                  1e9,
              expected.step, tolerance)
      << "the parts do not sum to the step";
}

void expect_ranks(const breakdown::BreakdownResult& result, const std::vector<Expected>& expected) {
  ASSERT_EQ(result.of_rank.size(), expected.size()) << result.missing;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expect_breakdown(result.of_rank[i], expected[i], "rank " + std::to_string(i));
  }
}

TEST(Breakdown, OfOneRankComputesCopiesAndIdles) {
  const auto script = Script{}.compute(0).copy(1).compute(0);
  const auto result = breakdown::breakdown(
      samples::point({}, {script}, {{trace(0, {0, 100}, {{0, 40}, {30, 60}, {70, 100}})}}));
  expect_ranks(result, {{.compute = 70, .copies = 20, .gap = 10, .step = 100}});
  EXPECT_EQ(result.missing, "");
  EXPECT_EQ(result.unaccounted, 0);
  EXPECT_EQ(result.ranks, std::vector{0});
}

TEST(Breakdown, OfTensorParallelRanksSplitsWaitFromTransfer) {
  const auto script = Script{}.compute().all_reduce(Axis::tp).compute();
  // Rank 1 comes to the all-reduce 20 ns after rank 0; both leave it at 80.
  const auto result =
      breakdown::breakdown(samples::point({.tp = 2}, {script, script},
                                          {{trace(0, {0, 100}, {{0, 30}, {30, 80}, {80, 100}}),
                                            trace(1, {0, 100}, {{0, 50}, {50, 80}, {80, 98}})}}));
  expect_ranks(result, {{.compute = 50, .transfer = 30, .wait = 20, .step = 100},
                        {.compute = 68, .transfer = 30, .other = 2, .step = 100}});
  ASSERT_TRUE(result.mean);
  expect_breakdown(*result.mean,
                   {.compute = 59, .transfer = 30, .wait = 10, .other = 1, .step = 100}, "mean");
  // The time that follows the last op is nobody's.
  EXPECT_DOUBLE_EQ(result.unaccounted, 0.01);
  ASSERT_TRUE(result.largest);
  EXPECT_EQ(result.largest->rank, 1);
  EXPECT_DOUBLE_EQ(result.largest->begin, 98e-9);
  EXPECT_DOUBLE_EQ(result.largest->length, 2e-9);
  EXPECT_EQ(result.largest->after, "gemm, setup");
  EXPECT_EQ(result.missing, "");
}

TEST(Breakdown, OfDataParallelRanksSeparatesHiddenFromExposed) {
  const auto script = Script{}.compute(0).all_reduce(Axis::dp, 1).compute(0).copy(2);
  // The all-reduce runs from 40 (50) to 95; compute covers it up to 60, a copy from 70 to 75.
  const auto result = breakdown::breakdown(
      samples::point({.dp = 2}, {script, script},
                     {{trace(0, {0, 100}, {{0, 40}, {40, 95}, {40, 60}, {70, 75}}),
                       trace(1, {0, 100}, {{0, 50}, {50, 95}, {50, 60}, {60, 60}})}}));
  expect_ranks(result,
               {{.compute = 60, .copies = 5, .transfer = 30, .other = 5, .step = 100, .hidden = 25},
                {.compute = 60, .transfer = 35, .other = 5, .step = 100, .hidden = 10}});
}

TEST(Breakdown, CountsEachMomentOnceWhenCollectivesRunSideBySide) {
  const auto script = Script{}.all_reduce(Axis::tp, 0).all_reduce(Axis::tp, 1);
  // Rank 0 waits on stream 0 until 60 while stream 1 transfers from 20 to 50: transfer goes first.
  const auto result = breakdown::breakdown(samples::point(
      {.tp = 2}, {script, script},
      {{trace(0, {0, 80}, {{0, 80}, {10, 50}}), trace(1, {0, 80}, {{60, 80}, {20, 50}})}}));
  expect_ranks(result, {{.transfer = 30 + 20, .wait = 20 + 10, .step = 80},
                        {.transfer = 30 + 20, .gap = 30, .step = 80}});
}

TEST(Breakdown, MatchesCollectivesPerGroupAndInOrder) {
  const auto script = Script{}.all_reduce(Axis::tp).all_reduce(Axis::dp).all_reduce(Axis::tp);
  // tp groups {0, 1} and {2, 3}, dp groups {0, 2} and {1, 3}. Only rank 1 is late for the first,
  // only rank 2 for the second, only rank 3 for the third.
  const auto result =
      breakdown::breakdown(samples::point({.tp = 2, .dp = 2}, std::vector<Script>(4, script),
                                          {{trace(0, {0, 90}, {{0, 20}, {20, 60}, {60, 70}}),
                                            trace(1, {0, 90}, {{10, 20}, {20, 30}, {30, 70}}),
                                            trace(2, {0, 90}, {{0, 20}, {40, 60}, {60, 90}}),
                                            trace(3, {0, 90}, {{0, 20}, {20, 30}, {80, 90}})}}));
  expect_ranks(result, {{.transfer = 10 + 20 + 10, .wait = 10 + 20, .other = 20, .step = 90},
                        {.transfer = 10 + 10 + 10, .wait = 30, .gap = 10, .other = 20, .step = 90},
                        {.transfer = 20 + 20 + 10, .wait = 20, .gap = 20, .step = 90},
                        {.transfer = 20 + 10 + 10, .gap = 50, .step = 90}});
}

/// Two stages, one microbatch, forward 10 and backward 20, transfers of 2: 60 ns of work one after
/// the other, so that each stage idles 30 even without a network.
std::vector<Script> two_stages() {
  return {Script{}.compute().send(1).receive(1).compute(),
          Script{}.receive(-1).compute().compute().send(-1)};
}

TEST(Breakdown, OfAPipelineCallsTheScheduleBubble) {
  const auto result = breakdown::breakdown(
      samples::point({.pp = 2}, two_stages(),
                     {{trace(0, {0, 64}, {{0, 10}, {10, 12}, {12, 44}, {44, 64}}),
                       trace(1, {-20, 44}, {{-20, 12}, {12, 22}, {22, 42}, {42, 44}})}}));
  expect_ranks(result, {{.compute = 30, .transfer = 4, .bubble = 30, .step = 64},
                        {.compute = 30, .transfer = 4, .bubble = 30, .step = 64}});
  EXPECT_EQ(result.missing, "");
}

TEST(Breakdown, OfAPipelineCallsALatePartnerWait) {
  // The trace is as above, but stage 1 does nothing for 8 ns before its backward, which no schedule
  // asks for.
  const auto result = breakdown::breakdown(
      samples::point({.pp = 2}, two_stages(),
                     {{trace(0, {0, 72}, {{0, 10}, {10, 12}, {12, 52}, {52, 72}}),
                       trace(1, {-20, 52}, {{-20, 12}, {12, 22}, {30, 50}, {50, 52}})}}));
  expect_ranks(result, {{.compute = 30, .transfer = 4, .wait = 8, .bubble = 30, .step = 72},
                        {.compute = 30, .transfer = 4, .bubble = 30, .gap = 8, .step = 72}});
}

TEST(Breakdown, ReplaysWithTheTimesOfTheStepItself) {
  // Stage 1 is twice as slow in this step: its 60 ns are the schedule's doing for stage 0.
  const auto result = breakdown::breakdown(
      samples::point({.pp = 2}, two_stages(),
                     {{trace(0, {0, 94}, {{0, 10}, {10, 12}, {12, 74}, {74, 94}}),
                       trace(1, {-20, 74}, {{-20, 12}, {12, 32}, {32, 72}, {72, 74}})}}));
  expect_ranks(result, {{.compute = 30, .transfer = 4, .bubble = 60, .step = 94},
                        {.compute = 60, .transfer = 4, .bubble = 30, .step = 94}});
}

TEST(Breakdown, OfAPipelineHidesExchangesBehindCompute) {
  const std::vector<Script> scripts{Script{}.compute(0).send(1, 1).after(0, 1).compute(0),
                                    Script{}.receive(-1, 1).compute(0).after(1, 1)};
  const auto result =
      breakdown::breakdown(samples::point({.pp = 2}, scripts,
                                          {{trace(0, {0, 40}, {{0, 10}, {10, 30}, {10, 40}}),
                                            trace(1, {0, 40}, {{5, 30}, {30, 40}})}}));
  // Free network: stage 0 needs 40 a step and stage 1 only 10, so stage 1 may idle 30.
  expect_ranks(result, {{.compute = 40, .step = 40, .hidden = 20},
                        {.compute = 10, .transfer = 20, .bubble = 5, .gap = 5, .step = 40}});
}

TEST(Breakdown, AveragesOverStepsAndSkipsWarmUpAndDroppedOnes) {
  const auto script = Script{}.compute();
  auto point = samples::point({}, {script}, {{trace(0, {0, 10}, {{0, 10}})}});
  point.traces.clear();
  for (std::uint32_t step = 0; step < 5; ++step) {
    auto at = trace(0, {0, 100}, {{0, 10 * static_cast<int>(step)}});
    at.step = step;
    point.traces.push_back({{at}});
  }
  point.warm_up_steps = 2;
  point.dropped = {0, 0, 0, 1, 0};
  expect_ranks(breakdown::breakdown(point), {{.compute = 30, .other = 70, .step = 100}});
}

TEST(BreakdownOther, ShowsOverlapOnOneStream) {
  const auto result = breakdown::breakdown(samples::point(
      {}, {Script{}.compute().compute()}, {{trace(0, {0, 100}, {{0, 60}, {50, 100}})}}));
  expect_ranks(result, {{.compute = 90, .other = 10, .step = 100}});
  EXPECT_DOUBLE_EQ(result.unaccounted, 0.1);
}

TEST(BreakdownOther, AcceptsOverlapOfStreamsUnlessTheyWereFolded) {
  auto point = samples::point({}, {Script{}.compute(0).compute(1)},
                              {{trace(0, {0, 100}, {{0, 60}, {50, 100}})}});
  expect_ranks(breakdown::breakdown(point), {{.compute = 100, .step = 100}});
  point.folded = true;
  expect_ranks(breakdown::breakdown(point), {{.compute = 90, .other = 10, .step = 100}});
}

TEST(BreakdownOther, ShowsAnOpThatBeganBeforeWhatItWaitsFor) {
  const auto script = Script{}.compute(0).all_reduce(Axis::dp, 1).after(0, 1);
  const auto result = breakdown::breakdown(samples::point(
      {.dp = 2}, {script, script},
      {{trace(0, {0, 100}, {{0, 60}, {40, 100}}), trace(1, {0, 100}, {{0, 60}, {60, 100}})}}));
  expect_ranks(result, {{.compute = 40, .transfer = 40, .other = 20, .step = 100},
                        {.compute = 60, .transfer = 40, .step = 100}});
  EXPECT_DOUBLE_EQ(result.unaccounted, 0.1);
}

TEST(BreakdownOther, IsNegativeWhenSpansLeaveTheStep) {
  const auto result = breakdown::breakdown(samples::point(
      {}, {Script{}.compute().copy()}, {{trace(0, {0, 100}, {{-5, 60}, {60, 120}})}}));
  expect_ranks(result, {{.compute = 65, .copies = 60, .other = -25, .step = 100}});
  EXPECT_DOUBLE_EQ(result.unaccounted, 0.25);
}

TEST(BreakdownOther, DoesNotCancelBetweenCauses) {
  const auto result = breakdown::breakdown(samples::point(
      {}, {Script{}.compute().compute()}, {{trace(0, {0, 100}, {{0, 60}, {50, 110}})}}));
  expect_ranks(result, {{.compute = 100, .other = 0, .step = 100}});
  EXPECT_DOUBLE_EQ(result.unaccounted, 0.2);
}

TEST(BreakdownOther, ShowsSpansThatEndBeforeTheyStart) {
  const auto result = breakdown::breakdown(samples::point(
      {}, {Script{}.compute().compute()}, {{trace(0, {0, 100}, {{0, 50}, {90, 60}})}}));
  expect_ranks(result, {{.compute = 50, .other = 50, .step = 100}});
}

TEST(BreakdownMissing, NamesRanksThatWereNotTraced) {
  const auto script = Script{}.compute().all_reduce(Axis::dp);
  const auto result = breakdown::breakdown(samples::point(
      {.dp = 4}, std::vector<Script>(4, script), {{trace(1, {0, 100}, {{0, 40}, {40, 100}})}}));
  EXPECT_EQ(result.ranks, std::vector{1});
  expect_ranks(result, {{.compute = 40, .transfer = 60, .step = 100}});
  EXPECT_THAT(result.missing, HasSubstr("ranks 0, 2, 3 not traced"));
}

TEST(BreakdownMissing, IsEmptyWhenUntracedRanksAreInOtherGroups) {
  const auto script = Script{}.all_reduce(Axis::tp);
  const auto result = breakdown::breakdown(
      samples::point({.tp = 2, .dp = 2}, std::vector<Script>(4, script),
                     {{trace(0, {0, 9}, {{0, 9}}), trace(1, {0, 9}, {{3, 9}})}}));
  expect_ranks(result,
               {{.transfer = 6, .wait = 3, .step = 9}, {.transfer = 6, .gap = 3, .step = 9}});
  EXPECT_EQ(result.missing, "");
}

TEST(BreakdownMissing, NamesRanksWithoutAlignedClocks) {
  const auto script = Script{}.all_reduce(Axis::dp);
  auto point = samples::point({.dp = 3}, std::vector<Script>(3, script),
                              {{trace(0, {0, 50}, {{0, 50}}), trace(1, {0, 50}, {{20, 50}}),
                                trace(2, {900, 950}, {{930, 950}})}});
  point.clock_error[2] = std::numeric_limits<double>::quiet_NaN();
  const auto result = breakdown::breakdown(point);
  expect_ranks(result, {{.transfer = 30, .wait = 20, .step = 50},
                        {.transfer = 30, .gap = 20, .step = 50},
                        {.transfer = 20, .gap = 30, .step = 50}});
  EXPECT_THAT(result.missing, HasSubstr("the clocks of rank 2 are not aligned"));
}

TEST(BreakdownMissing, SaysWhenClocksAgreeTooLittle) {
  const auto script = Script{}.all_reduce(Axis::dp);
  auto point =
      samples::point({.dp = 2}, {script, script},
                     {{trace(0, {0, 1000}, {{0, 1000}}), trace(1, {0, 1000}, {{0, 1000}})}});
  point.clock_error[1] = 9e-9;
  EXPECT_EQ(breakdown::breakdown(point).missing, "");
  point.clock_error[1] = 200e-9;
  EXPECT_THAT(breakdown::breakdown(point).missing, HasSubstr("clocks agree to 200 ns only"));
}

TEST(BreakdownMissing, LeavesOutDamagedTraces) {
  const auto script = Script{}.compute().compute();
  auto point =
      samples::point({.dp = 2}, {script, script},
                     {{trace(0, {0, 50}, {{0, 20}, {20, 50}}), trace(1, {0, 50}, {{0, 9}})}});
  const auto result = breakdown::breakdown(point);
  EXPECT_EQ(result.ranks, std::vector{0});
  EXPECT_THAT(result.missing, HasSubstr("the traces of rank 1 are damaged"));
}

TEST(BreakdownMissing, SaysWhyThereIsNone) {
  auto point = samples::point({}, {Script{}.compute()}, {{trace(0, {0, 10}, {{0, 10}})}});
  point.traces.clear();
  EXPECT_FALSE(breakdown::breakdown(point).mean);
  EXPECT_EQ(breakdown::breakdown(point).missing, "no step was traced");

  point = samples::point({}, {Script{}.compute()}, {{trace(0, {0, 10}, {{0, 10}})}});
  point.outline.outlines[0].ops[0].wait_count = 7;
  EXPECT_FALSE(breakdown::breakdown(point).mean);
  EXPECT_THAT(breakdown::breakdown(point).missing, HasSubstr("damaged"));

  point = samples::point({}, {Script{}.compute().compute(1).after(0, 0)},
                         {{trace(0, {0, 10}, {{0, 5}, {5, 10}})}});
  EXPECT_THAT(breakdown::breakdown(point).missing, HasSubstr("damaged"));  // a wait for no op

  point = samples::point({}, {Script{}.compute()}, {{trace(0, {0, 10}, {{0, 10}})}});
  point.outline.outline_of_rank.clear();
  EXPECT_FALSE(breakdown::breakdown(point).mean);
  EXPECT_THAT(breakdown::breakdown(point).missing, HasSubstr("0 of 1 ranks"));
}

TEST(BreakdownMissing, CallsLatePartnersWaitWhenTheReplayFails) {
  // Stage 1 takes the message, but the programs as stored never send it.
  std::vector<Script> scripts{Script{}.compute(), Script{}.receive(-1)};
  const auto result = breakdown::breakdown(samples::point(
      {.pp = 2}, scripts, {{trace(0, {0, 50}, {{0, 50}}), trace(1, {0, 50}, {{0, 50}})}}));
  expect_ranks(result, {{.compute = 50, .step = 50}, {.transfer = 50, .step = 50}});
  EXPECT_THAT(result.missing, HasSubstr("messages of rank 1 match no op"));

  // Here the message has a partner, but another one has none: no replay comes to its end.
  scripts = {Script{}.compute().send(1), Script{}.receive(-1).receive(-1)};
  const auto stuck = breakdown::breakdown(samples::point(
      {.pp = 2}, scripts,
      {{trace(0, {0, 50}, {{0, 30}, {30, 40}}), trace(1, {0, 50}, {{0, 40}, {40, 50}})}}));
  expect_ranks(stuck, {{.compute = 30, .transfer = 10, .other = 10, .step = 50},
                       {.transfer = 20, .wait = 30, .step = 50}});
  EXPECT_THAT(stuck.missing, HasSubstr("bubble"));
}

TEST(RankList, NamesTheRanksInTheWorld) {
  results::PointData point;
  const std::string own = breakdown::rank_list(point, {0, 1});
  point.world_rank = {0, 2, 1, 3};
  EXPECT_EQ(breakdown::rank_list(point, {0, 2}),
            own);  // next to each other, though not in the point
  EXPECT_NE(breakdown::rank_list(point, {0, 1}), own);
}

}  // namespace
}  // namespace isoscale::analysis
