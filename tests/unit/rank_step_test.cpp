// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

/// These tests split one step of one rank in ways that the tests of the breakdown do not reach.
#include "analysis/breakdown/rank_step.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "analysis/breakdown/op_times.hpp"
#include "run_samples.hpp"

namespace isoscale::analysis {
namespace {

using mesh::Axis;
using samples::Script;
using samples::trace;
using testing::DoubleNear;
using testing::Pair;
using testing::UnorderedElementsAre;
using units::Nanoseconds;

struct Result {
  breakdown::RankStep step;
  std::vector<breakdown::OpShare> shares;
};

Result split_of(const Script& script, const timeline::StepTrace& trace,
                const std::vector<int>& waits = {},
                program::Folding streams = program::Folding::as_streamed) {
  Result result;
  std::vector<Nanoseconds> times;
  for (const int wait : waits) times.emplace_back(wait);
  result.step = breakdown::split(script.outline(), trace, times, streams, result.shares);
  return result;
}

/// Nanoseconds of an op: its own, waiting, hidden, and of the gap before it.
struct Share {
  int own = 0, waiting = 0, hidden = 0, gap = 0;
};
/// Nanoseconds of a rank's step.
struct Expected {
  int compute = 0, copies = 0, transfer = 0, wait = 0, late = 0, hidden = 0, gap = 0;
  int unaccounted = 0;
  std::vector<Share> shares;
};

void expect_step(const Result& found, const Expected& expected) {
  const breakdown::RankStep& step = found.step;
  EXPECT_EQ(step.compute, Nanoseconds{expected.compute});
  EXPECT_EQ(step.copies, Nanoseconds{expected.copies});
  EXPECT_EQ(step.transfer, Nanoseconds{expected.transfer});
  EXPECT_EQ(step.wait, Nanoseconds{expected.wait});
  EXPECT_EQ(step.late, Nanoseconds{expected.late});
  EXPECT_EQ(step.hidden, Nanoseconds{expected.hidden});
  EXPECT_EQ(step.gap, Nanoseconds{expected.gap});
  EXPECT_EQ(step.unaccounted, Nanoseconds{expected.unaccounted});
  ASSERT_EQ(found.shares.size(), expected.shares.size());
  for (std::size_t op = 0; op < expected.shares.size(); ++op) {
    SCOPED_TRACE(op);
    EXPECT_EQ(found.shares[op].own, Nanoseconds{expected.shares[op].own});
    EXPECT_EQ(found.shares[op].waiting, Nanoseconds{expected.shares[op].waiting});
    EXPECT_EQ(found.shares[op].hidden, Nanoseconds{expected.shares[op].hidden});
    EXPECT_EQ(found.shares[op].gap, Nanoseconds{expected.shares[op].gap});
  }
}

void expect_largest(const breakdown::RankStep& step, int begin, int length, std::uint32_t after) {
  EXPECT_EQ(step.largest.begin, Nanoseconds{begin});
  EXPECT_EQ(step.largest.length, Nanoseconds{length});
  EXPECT_EQ(step.largest.after, after);
}

TEST(RankStep, GivesEachMomentToTheFirstClaimAndThenTheLowestStream) {
  // Stream 0 waits from 0 to 60 in an exchange, stream 1 copies from 10 to 30, stream 2 computes
  // from 20 to 40, stream 3 transfers from 35 to 50. Hidden are 30 of the exchange, and 5 of the
  // all-reduce among these.
  expect_step(
      split_of(Script{}.send(1, 0).copy(1).compute(2).all_reduce(Axis::dp, 3),
               trace(0, {0, 60}, {{0, 60}, {10, 30}, {20, 40}, {35, 50}}), {60, 0, 0, 0}),
      {.compute = 20,
       .copies = 10,
       .transfer = 10,
       .late = 20,
       .hidden = 30,
       .shares = {
           {.waiting = 20, .hidden = 30}, {.own = 10}, {.own = 20}, {.own = 10, .hidden = 5}}});
  // A collective whose last member is missing goes before an exchange whose partner is.
  expect_step(split_of(Script{}.send(1, 0).all_reduce(Axis::dp, 1),
                       trace(0, {0, 40}, {{0, 40}, {10, 30}}), {40, 20}),
              {.wait = 20, .late = 20, .shares = {{.waiting = 20}, {.waiting = 20}}});
  // Stream 2 computes until stream 1 begins, and stream 1 until stream 0 begins.
  expect_step(split_of(Script{}.compute(2).compute(1).compute(0),
                       trace(0, {0, 50}, {{0, 30}, {10, 40}, {20, 50}})),
              {.compute = 50, .shares = {{.own = 10}, {.own = 10}, {.own = 30}}});
}

TEST(RankStepStreams, OrderOpsByTheirOwnStreamAlone) {
  // Stream 1's second op begins before stream 0's first has ended: no contradiction on three
  // streams, 30 ns of one where all were folded.
  const Script script = Script{}.compute(0).compute(1).compute(2).compute(1);
  const auto spans = trace(0, {0, 100}, {{0, 60}, {0, 30}, {10, 50}, {30, 100}});
  const auto streamed = split_of(script, spans).step;
  EXPECT_EQ(streamed.compute, Nanoseconds{100});
  EXPECT_EQ(streamed.unaccounted, Nanoseconds{0});
  const auto folded = split_of(script, spans, {}, program::Folding::folded).step;
  EXPECT_EQ(folded.compute, Nanoseconds{40});
  EXPECT_EQ(folded.unaccounted, Nanoseconds{60});
}

TEST(RankStepGap, IsOfTheOpThatBeginsNext) {
  // Nothing runs from 0 to 10, from 30 to 45 and from 60 to 80; the op that begins next is on
  // another stream each time, and was issued in another order. Of two that begin at once it is the
  // one on the lowest stream.
  expect_step(split_of(Script{}.compute(2).compute(0).copy(1).all_reduce(Axis::dp, 2),
                       trace(0, {0, 90}, {{45, 60}, {10, 30}, {80, 85}, {80, 90}})),
              {.compute = 35,
               .copies = 5,
               .transfer = 5,
               .hidden = 5,
               .gap = 45,
               .shares = {{.own = 15, .gap = 15},
                          {.own = 20, .gap = 10},
                          {.own = 5, .gap = 20},
                          {.own = 5, .hidden = 5}}});
  // The only op begins after the step's end: 30 ns of gap are in the step.
  expect_step(split_of(Script{}.compute(), trace(0, {0, 30}, {{50, 60}})),
              {.compute = 10, .gap = 30, .unaccounted = 10, .shares = {{.own = 10, .gap = 30}}});
  // It comes before ops that take no time, too.
  expect_step(split_of(Script{}.compute().copy().all_reduce(Axis::dp).compute(1),
                       trace(0, {0, 60}, {{0, 20}, {30, 30}, {45, 45}, {25, 25}})),
              {.compute = 20,
               .gap = 25,
               .unaccounted = 15,
               .shares = {{.own = 20}, {.gap = 5}, {.gap = 15}, {.gap = 5}}});
}

TEST(RankStepOther, IsTheTailAndWhatContradicts) {
  const auto tail = split_of(Script{}.compute(0).copy(1).all_reduce(Axis::dp, 2),
                             trace(0, {0, 100}, {{0, 40}, {10, 70}, {20, 60}}))
                        .step;
  EXPECT_EQ(tail.gap, Nanoseconds{0});
  EXPECT_EQ(tail.unaccounted, Nanoseconds{30});
  expect_largest(tail, 70, 30, 1);
  const auto empty = split_of(Script{}, trace(0, {5, 25}, {})).step;
  EXPECT_EQ(empty.step, Nanoseconds{20});
  EXPECT_EQ(empty.unaccounted, Nanoseconds{20});
  EXPECT_EQ(empty.largest.begin, Nanoseconds{5});
  EXPECT_EQ(empty.largest.length, Nanoseconds{20});
  // Ops 1 and 2 begin 5 and 20 ns too early; the tail is 10 ns.
  const auto early = split_of(Script{}.compute().compute().compute(),
                              trace(0, {0, 100}, {{0, 30}, {25, 60}, {40, 90}}))
                         .step;
  EXPECT_EQ(early.unaccounted, Nanoseconds{35});
  expect_largest(early, 40, 20, 1);
  // Streams 1 and 2 both claim to have begun before the op that they wait for ended.
  const auto both = split_of(Script{}.compute(0).compute(1).after(0, 1).copy(2).after(0, 1),
                             trace(0, {0, 100}, {{0, 50}, {30, 100}, {40, 80}}))
                        .step;
  EXPECT_EQ(both.unaccounted, Nanoseconds{20});
  EXPECT_EQ(both.compute, Nanoseconds{80});
  EXPECT_EQ(both.largest.begin, Nanoseconds{30});
  EXPECT_EQ(both.largest.length, Nanoseconds{20});
}

TEST(RankStep, CountsEachMomentOnceWhateverTheSpans) {
  // Random steps on three streams: the parts and what is unaccounted for are the step, and the
  // shares of ops are the parts.
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 draw{seed};
    Script script;
    std::vector<std::pair<int, int>> spans;
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
    EXPECT_EQ(step.compute + step.copies + step.transfer + step.wait + step.late + step.gap +
                  step.unaccounted,
              step.step)
        << seed;
    EXPECT_EQ(step.unaccounted, Nanoseconds{7}) << seed;
    Nanoseconds own, waiting, gap;
    for (const breakdown::OpShare& share : shares) {
      own += share.own;
      waiting += share.waiting;
      gap += share.gap;
    }
    EXPECT_EQ(own, step.compute + step.copies + step.transfer) << seed;
    EXPECT_EQ(waiting, step.wait + step.late) << seed;
    EXPECT_EQ(gap, step.gap) << seed;
  }
}

results::PointData two_ranks() {
  const Script script = Script{}.compute().copy(1).compute().all_reduce(mesh::Axis::dp, 1);
  return samples::point({.dp = 2}, {script, script},
                        {{trace(0, {0, 100}, {{0, 30}, {10, 20}, {30, 60}, {60, 100}}),
                          trace(1, {0, 100}, {{0, 50}, {10, 30}, {50, 60}, {60, 100}})}});
}

TEST(OpTimes, AreMeansOverRanksByKind) {
  constexpr double exact = 1e-18;
  EXPECT_THAT(breakdown::op_times(two_ranks()),
              UnorderedElementsAre(Pair("gemm", DoubleNear(60e-9, exact)),
                                   Pair("copy", DoubleNear(15e-9, exact)),
                                   Pair("all_reduce", DoubleNear(40e-9, exact))));
}

TEST(OpTimes, AreMeansOverTheTracedStepsThatCount) {
  results::PointData point = two_ranks();
  point.traces.push_back(point.traces.front());
  for (timeline::StepTrace& rank : point.traces.back().ranks) {
    for (timeline::Span& span : rank.spans) span.end = span.start;
  }
  EXPECT_THAT(breakdown::op_times(point).at("gemm"), DoubleNear(30e-9, 1e-18));
  // Traces that are damaged do not count, nor do steps of warm-up.
  for (timeline::StepTrace& rank : point.traces.back().ranks) rank.spans.clear();
  EXPECT_THAT(breakdown::op_times(point).at("gemm"), DoubleNear(60e-9, 1e-18));
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
  EXPECT_DOUBLE_EQ(times[0].calls, 1);
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
