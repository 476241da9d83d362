// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

/// These tests split one step of one rank in ways that the tests of the breakdown do not reach.
#include "analysis/breakdown/rank_step.hpp"
#include "analysis/breakdown/op_times.hpp"
#include "analysis_test.hpp"

namespace isoscale::analysis {
namespace {

struct Result {
  breakdown::RankStep step;
  std::vector<breakdown::OpShare> shares;
};

std::vector<Nanoseconds> nanoseconds(const std::vector<int>& times) {
  return mapped(times, [](int time) { return Nanoseconds{time}; });
}

Result split_of(const Script& script, const timeline::StepTrace& trace,
                const std::vector<int>& waits = {}) {
  Result result;
  result.step = breakdown::split(script.outline(), trace, nanoseconds(waits),
                                 program::Folding::as_streamed, result.shares);
  return result;
}

/// Nanoseconds of an op: its own, waiting, hidden, hidden while data moved, and of the gap before
/// it.
struct Share {
  int own = 0, waiting = 0, hidden = 0, moving = 0, gap = 0;
};
/// Nanoseconds of a rank's step.
struct Expected {
  int compute = 0, copies = 0, transfer = 0, wait = 0, late = 0, hidden = 0, moving = 0, gap = 0;
  int unaccounted = 0;
};

void expect_step(const Result& found, const Expected& expected, const std::vector<Share>& shares) {
  const breakdown::RankStep& at = found.step;
  EXPECT_THAT((std::array{at.compute, at.copies, at.transfer, at.wait, at.late, at.hidden,
                          at.hidden_transfer, at.gap, at.unaccounted}),
              ElementsAreArray(nanoseconds({expected.compute, expected.copies, expected.transfer,
                                            expected.wait, expected.late, expected.hidden,
                                            expected.moving, expected.gap, expected.unaccounted})));
  ASSERT_EQ(found.shares.size(), shares.size());
  for (std::size_t op = 0; op < shares.size(); ++op) {
    const auto& [own, waiting, hidden, moving, gap] = shares[op];
    const breakdown::OpShare& share = found.shares[op];
    EXPECT_THAT(
        (std::array{share.own, share.waiting, share.hidden, share.hidden_transfer, share.gap}),
        ElementsAreArray(nanoseconds({own, waiting, hidden, moving, gap})))
        << op;
  }
}

/// `length` nanoseconds from `begin` on are the longest stretch of what is not accounted for.
void expect_unexplained(const breakdown::RankStep& step, int all, int begin, int length) {
  EXPECT_THAT((std::array{step.unaccounted, step.largest.begin, step.largest.length}),
              ElementsAreArray(nanoseconds({all, begin, length})));
}

TEST(RankStep, GivesEachMomentToTheFirstClaimAndThenTheLowestStream) {
  // Stream 0 waits from 0 to 60 in an exchange, stream 1 copies from 10 to 30, stream 2 computes
  // from 20 to 40, stream 3 transfers from 35 to 50. Hidden are 30 of the exchange, and 5 of the
  // all-reduce among these.
  expect_step(split_of(Script{}.send(1, 0).copy(1).compute(2).all_reduce(Axis::dp, 3),
                       trace(0, {0, 60}, {{0, 60}, {10, 30}, {20, 40}, {35, 50}}), {60, 0, 0, 0}),
              {.compute = 20, .copies = 10, .transfer = 10, .late = 20, .hidden = 30, .moving = 5},
              {{.waiting = 20, .hidden = 30},
               {.own = 10},
               {.own = 20},
               {.own = 10, .hidden = 5, .moving = 5}});
  // A collective whose last member is missing goes before an exchange whose partner is.
  expect_step(split_of(Script{}.send(1, 0).all_reduce(Axis::dp, 1),
                       trace(0, {0, 40}, {{0, 40}, {10, 30}}), {40, 20}),
              {.wait = 20, .late = 20}, {{.waiting = 20}, {.waiting = 20}});
  // Stream 2 computes until stream 1 begins, and stream 1 until stream 0 begins.
  expect_step(split_of(Script{}.compute(2).compute(1).compute(0),
                       trace(0, {0, 50}, {{0, 30}, {10, 40}, {20, 50}})),
              {.compute = 50}, {{.own = 10}, {.own = 10}, {.own = 30}});
}

TEST(RankStepGap, IsOfTheOpThatBeginsNext) {
  // Nothing runs from 0 to 10, from 30 to 45 and from 60 to 80; the op that begins next is on
  // another stream each time, and was issued in another order. Of two that begin at once it is the
  // one on the lowest stream.
  expect_step(split_of(Script{}.compute(2).compute(0).copy(1).all_reduce(Axis::dp, 2),
                       trace(0, {0, 90}, {{45, 60}, {10, 30}, {80, 85}, {80, 90}})),
              {.compute = 35, .copies = 5, .transfer = 5, .hidden = 5, .moving = 5, .gap = 45},
              {{.own = 15, .gap = 15},
               {.own = 20, .gap = 10},
               {.own = 5, .gap = 20},
               {.own = 5, .hidden = 5, .moving = 5}});
  // The only op begins after the step's end: 30 ns of gap are in the step.
  expect_step(split_of(Script{}.compute(), trace(0, {0, 30}, {{50, 60}})),
              {.compute = 10, .gap = 30, .unaccounted = 10}, {{.own = 10, .gap = 30}});
  // It comes before ops that take no time, too.
  expect_step(split_of(Script{}.compute().copy().all_reduce(Axis::dp).compute(1),
                       trace(0, {0, 60}, {{0, 20}, {30, 30}, {45, 45}, {25, 25}})),
              {.compute = 20, .gap = 25, .unaccounted = 15},
              {{.own = 20}, {.gap = 5}, {.gap = 15}, {.gap = 5}});
}

TEST(RankStepOther, IsTheTailAndWhatContradicts) {
  const auto tail = split_of(Script{}.compute(0).copy(1).all_reduce(Axis::dp, 2),
                             trace(0, {0, 100}, {{0, 40}, {10, 70}, {20, 60}}))
                        .step;
  EXPECT_EQ(tail.gap, Nanoseconds{0});
  expect_unexplained(tail, 30, 70, 30);
  EXPECT_EQ(tail.largest.after, 1U);
  expect_unexplained(split_of(Script{}, trace(0, {5, 25}, {})).step, 20, 5, 20);
  // Ops 1 and 2 begin 5 and 20 ns too early; the tail is 10 ns.
  const auto early = split_of(Script{}.compute().compute().compute(),
                              trace(0, {0, 100}, {{0, 30}, {25, 60}, {40, 90}}))
                         .step;
  expect_unexplained(early, 35, 40, 20);
  EXPECT_EQ(early.largest.after, 1U);
  // Streams 1 and 2 both claim to have begun before the op that they wait for ended.
  const auto both = split_of(Script{}.compute(0).compute(1).after(0, 1).copy(2).after(0, 1),
                             trace(0, {0, 100}, {{0, 50}, {30, 100}, {40, 80}}))
                        .step;
  expect_unexplained(both, 20, 30, 20);
  EXPECT_EQ(both.compute, Nanoseconds{80});
}

TEST(RankStep, CountsEachMomentOnceWhateverTheSpans) {
  // Random steps on three streams: the parts and what is unaccounted for are the step, and the
  // shares of ops are the parts.
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 draw{seed};
    Script script;
    Spans spans;
    std::vector<int> waits;
    std::array ended{0, 0, 0};
    int end = 0;
    for (int op = 0; op < 12; ++op) {
      const auto stream = static_cast<program::StreamId>(draw() % 3);
      const auto kind = draw() % 4;
      if (kind == 0) script.compute(stream);
      if (kind == 1) script.copy(stream);
      if (kind == 2) script.all_reduce(Axis::dp, stream);
      if (kind == 3) script.send(1, stream);
      const int start = ended[stream] + static_cast<int>(draw() % 10);
      const int length = static_cast<int>(draw() % 30);
      spans.emplace_back(start, start + length);
      waits.push_back(kind >= 2 ? static_cast<int>(draw() % 31) % (length + 1) : 0);
      ended[stream] = start + length;
      end = std::max(end, start + length);
    }
    const auto [step, shares] = split_of(script, trace(0, {0, end + 7}, spans), waits);
    const Nanoseconds useful = step.compute + step.copies + step.transfer;
    EXPECT_EQ(useful + step.wait + step.late + step.gap + step.unaccounted, step.step) << seed;
    EXPECT_EQ(step.unaccounted, Nanoseconds{7}) << seed;
    Nanoseconds own, waiting, gap;
    for (const breakdown::OpShare& share : shares) {
      own += share.own;
      waiting += share.waiting;
      gap += share.gap;
    }
    EXPECT_THAT((std::array{own, waiting, gap}),
                ElementsAre(useful, step.wait + step.late, step.gap))
        << seed;
  }
}

results::PointData two_ranks() {
  const Script script = Script{}.compute().copy(1).compute().all_reduce(Axis::dp, 1);
  return samples::point({.dp = 2}, {script, script},
                        step({0, 100}, {{{0, 30}, {10, 20}, {30, 60}, {60, 100}},
                                        {{0, 50}, {10, 30}, {50, 60}, {60, 100}}}));
}

TEST(OpTimes, AreMeansOverRanksAndTheTracedStepsThatCount) {
  results::PointData point = two_ranks();
  const auto about = [](double time) { return DoubleNear(time, 1e-18); };
  EXPECT_THAT(breakdown::op_times(point),
              UnorderedElementsAre(Pair("gemm", about(60e-9)), Pair("copy", about(15e-9)),
                                   Pair("all_reduce", about(40e-9))));
  point.traces.push_back(point.traces.front());
  for (timeline::StepTrace& rank : point.traces.back().ranks) {
    for (timeline::Span& span : rank.spans) span.end = span.start;
  }
  EXPECT_THAT(breakdown::op_times(point).at("gemm"), about(30e-9));
  // Traces that are damaged do not count, nor do steps of warm-up.
  for (timeline::StepTrace& rank : point.traces.back().ranks) rank.spans.clear();
  EXPECT_THAT(breakdown::op_times(point).at("gemm"), about(60e-9));
  point.warm_up_steps = 1;
  EXPECT_TRUE(breakdown::op_times(point).empty());
  point.warm_up_steps = 0;
  point.traces.clear();
  EXPECT_TRUE(breakdown::op_times(point).empty());
}

/// The first GEMM takes 30 and 50 ns, the second 30 and 10; 1e3 and 4e3 FLOP.
TEST(GemmTimes, AreMeansOverRanksByShape) {
  results::PointData point = two_ranks();
  EXPECT_TRUE(breakdown::gemm_times(point).empty()) << "an old file";
  for (program::Outline& outline : point.outline.outlines) {
    outline.ops[0].gemm = {.m = 10, .n = 10, .k = 5, .batch = 1};
    outline.ops[0].flop = 1e3;
    outline.ops[2].gemm = {.m = 20, .n = 10, .k = 10, .batch = 1};
    outline.ops[2].flop = 4e3;
  }
  const std::vector<breakdown::GemmTime> times = breakdown::gemm_times(point);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].shape.k, 5U);
  EXPECT_NEAR(times[0].seconds, 40e-9, 1e-18);
  EXPECT_NEAR(times[1].seconds, 20e-9, 1e-18);
  EXPECT_DOUBLE_EQ(times[1].flop, 4e3);
  for (program::Outline& outline : point.outline.outlines) {
    outline.ops[2].gemm = outline.ops[0].gemm;
  }
  ASSERT_EQ(breakdown::gemm_times(point).size(), 1U);
  EXPECT_DOUBLE_EQ(breakdown::gemm_times(point)[0].calls, 2);
  EXPECT_DOUBLE_EQ(breakdown::gemm_times(point)[0].flop, 5e3);
}

}  // namespace
}  // namespace isoscale::analysis
