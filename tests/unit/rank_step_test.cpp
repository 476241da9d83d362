// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/rank_step.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>
#include <vector>

#include "run_samples.hpp"

/// What tests of the breakdown do not reach: splits of one step on one rank.
namespace isoscale::analysis {
namespace {

using mesh::Axis;
using samples::Script;
using samples::trace;
using units::Nanoseconds;

struct Result {
  RankStep step;
  std::vector<OpShare> shares;
};

Result split_of(const Script& script, const timeline::StepTrace& trace,
                const std::vector<int>& waits = {},
                program::Folding streams = program::Folding::as_streamed) {
  Result result;
  std::vector<Nanoseconds> times;
  for (const int wait : waits) times.emplace_back(wait);
  result.step = split(script.outline(), trace, times, streams, result.shares);
  return result;
}

void expect_share(const OpShare& share, int own, int waiting, int hidden, int gap) {
  EXPECT_EQ(share.own, Nanoseconds{own});
  EXPECT_EQ(share.waiting, Nanoseconds{waiting});
  EXPECT_EQ(share.hidden, Nanoseconds{hidden});
  EXPECT_EQ(share.gap, Nanoseconds{gap});
}

TEST(RankStepPriority, GoesByClaimAndNotByStream) {
  // Stream 0 waits from 0 to 60 in an exchange, stream 1 copies from 10 to 30, stream 2 computes
  // from 20 to 40, stream 3 transfers from 35 to 50.
  const auto [step, shares] =
      split_of(Script{}.send(1, 0).copy(1).compute(2).all_reduce(Axis::dp, 3),
               trace(0, {0, 60}, {{0, 60}, {10, 30}, {20, 40}, {35, 50}}), {60, 0, 0, 0});
  EXPECT_EQ(step.compute, Nanoseconds{20});
  EXPECT_EQ(step.copies, Nanoseconds{10});
  EXPECT_EQ(step.transfer, Nanoseconds{10});
  EXPECT_EQ(step.wait, Nanoseconds{0});
  EXPECT_EQ(step.late, Nanoseconds{20});
  EXPECT_EQ(step.hidden, Nanoseconds{30});  // of the exchange 30, of the all-reduce 5 of these
  EXPECT_EQ(step.gap, Nanoseconds{0});
  EXPECT_EQ(step.unaccounted, Nanoseconds{0});
  expect_share(shares[0], 0, 20, 30, 0);
  expect_share(shares[1], 10, 0, 0, 0);
  expect_share(shares[2], 20, 0, 0, 0);
  expect_share(shares[3], 10, 0, 5, 0);
}

TEST(RankStepPriority, PutsWaitBeforeLate) {
  // A collective whose last member is missing, beside an exchange whose partner is.
  const auto [step, shares] = split_of(Script{}.send(1, 0).all_reduce(Axis::dp, 1),
                                       trace(0, {0, 40}, {{0, 40}, {10, 30}}), {40, 20});
  EXPECT_EQ(step.wait, Nanoseconds{20});
  EXPECT_EQ(step.late, Nanoseconds{20});
  expect_share(shares[0], 0, 20, 0, 0);
  expect_share(shares[1], 0, 20, 0, 0);
}

TEST(RankStepPriority, GivesLikeClaimsToTheLowestStream) {
  const auto [step, shares] = split_of(Script{}.compute(2).compute(1).compute(0),
                                       trace(0, {0, 50}, {{0, 30}, {10, 40}, {20, 50}}));
  EXPECT_EQ(step.compute, Nanoseconds{50});
  expect_share(shares[0], 10, 0, 0, 0);  // stream 2 until stream 1 begins
  expect_share(shares[1], 10, 0, 0, 0);  // stream 1 until stream 0 begins
  expect_share(shares[2], 30, 0, 0, 0);
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
  // another stream each time, and was issued in another order.
  const auto [step, shares] =
      split_of(Script{}.compute(2).compute(0).copy(1).all_reduce(Axis::dp, 2),
               trace(0, {0, 90}, {{45, 60}, {10, 30}, {80, 85}, {80, 90}}));
  EXPECT_EQ(step.gap, Nanoseconds{45});
  EXPECT_EQ(shares[0].gap, Nanoseconds{15});
  EXPECT_EQ(shares[1].gap, Nanoseconds{10});
  EXPECT_EQ(shares[2].gap, Nanoseconds{20});  // the lowest stream of two that begin at once
  EXPECT_EQ(shares[3].gap, Nanoseconds{0});
  EXPECT_EQ(step.unaccounted, Nanoseconds{0});
}

TEST(RankStepGap, EndsWithTheStep) {
  // The only op begins after the step's end: 30 ns of gap are in the step.
  const auto [step, shares] = split_of(Script{}.compute(), trace(0, {0, 30}, {{50, 60}}));
  EXPECT_EQ(step.gap, Nanoseconds{30});
  EXPECT_EQ(shares[0].gap, Nanoseconds{30});
  EXPECT_EQ(step.compute, Nanoseconds{10});
  EXPECT_EQ(step.unaccounted, Nanoseconds{10});
}

TEST(RankStepGap, ComesBeforeOpsThatTakeNoTimeToo) {
  const auto [step, shares] = split_of(Script{}.compute().copy().all_reduce(Axis::dp).compute(1),
                                       trace(0, {0, 60}, {{0, 20}, {30, 30}, {45, 45}, {25, 25}}));
  EXPECT_EQ(step.compute, Nanoseconds{20});
  EXPECT_EQ(step.gap, Nanoseconds{25});
  EXPECT_EQ(shares[1].gap, Nanoseconds{5});
  EXPECT_EQ(shares[2].gap, Nanoseconds{15});
  EXPECT_EQ(shares[3].gap, Nanoseconds{5});
  EXPECT_EQ(step.unaccounted, Nanoseconds{15});
}

TEST(RankStepOther, IsTheTail) {
  const auto [step, shares] = split_of(Script{}.compute(0).copy(1).all_reduce(Axis::dp, 2),
                                       trace(0, {0, 100}, {{0, 40}, {10, 70}, {20, 60}}));
  EXPECT_EQ(step.gap, Nanoseconds{0});
  EXPECT_EQ(step.unaccounted, Nanoseconds{30});
  EXPECT_EQ(step.largest.begin, Nanoseconds{70});
  EXPECT_EQ(step.largest.length, Nanoseconds{30});
  EXPECT_EQ(step.largest.after, 1U);
}

TEST(RankStepOther, IsAllOfAStepWithoutOps) {
  const auto [step, shares] = split_of(Script{}, trace(0, {5, 25}, {}));
  EXPECT_EQ(step.step, Nanoseconds{20});
  EXPECT_EQ(step.unaccounted, Nanoseconds{20});
  EXPECT_EQ(step.largest.begin, Nanoseconds{5});
  EXPECT_EQ(step.largest.length, Nanoseconds{20});
}

TEST(RankStepOther, NamesTheLongestStretch) {
  // Ops 1 and 2 begin 5 and 20 ns too early; the tail is 10 ns.
  const auto [step, shares] = split_of(Script{}.compute().compute().compute(),
                                       trace(0, {0, 100}, {{0, 30}, {25, 60}, {40, 90}}));
  EXPECT_EQ(step.unaccounted, Nanoseconds{35});
  EXPECT_EQ(step.largest.begin, Nanoseconds{40});
  EXPECT_EQ(step.largest.length, Nanoseconds{20});
  EXPECT_EQ(step.largest.after, 1U);
}

TEST(RankStepOther, IsOnceWhereSeveralSpansContradict) {
  // Streams 1 and 2 both claim to have begun before the op that they wait for ended.
  const auto step = split_of(Script{}.compute(0).compute(1).after(0, 1).copy(2).after(0, 1),
                             trace(0, {0, 100}, {{0, 50}, {30, 100}, {40, 80}}))
                        .step;
  EXPECT_EQ(step.unaccounted, Nanoseconds{20});
  EXPECT_EQ(step.compute, Nanoseconds{80});
  EXPECT_EQ(step.largest.begin, Nanoseconds{30});
  EXPECT_EQ(step.largest.length, Nanoseconds{20});
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
    for (const OpShare& share : shares) {
      own += share.own;
      waiting += share.waiting;
      gap += share.gap;
    }
    EXPECT_EQ(own, step.compute + step.copies + step.transfer) << seed;
    EXPECT_EQ(waiting, step.wait + step.late) << seed;
    EXPECT_EQ(gap, step.gap) << seed;
  }
}

}  // namespace
}  // namespace isoscale::analysis
