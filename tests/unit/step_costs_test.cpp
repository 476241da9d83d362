// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/losses.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cause_samples.hpp"

namespace isoscale::analysis {
namespace {

using mesh::Axis;
using samples::add_step;
using samples::alike;
using samples::Script;
using samples::solo;
using samples::trace;

constexpr double ns = 1e-9;
constexpr double tolerance = 1e-15;  // of a second: 1e-6 ns

double sum(const StepCosts& costs) {
  double result = costs.gemm + costs.other_compute + costs.copies + costs.bubble + costs.waiting +
                  costs.gap + costs.other;
  for (const auto& [axes, seconds] : costs.transfer) result += seconds;
  return result;
}

/// The costs of a point, which sum to its step.
StepCosts costs_of(const results::PointData& point) {
  const BreakdownResult parts = breakdown(point);
  const auto costs = step_costs(point, parts);
  if (!costs) throw std::runtime_error("no costs: " + parts.missing);
  EXPECT_NEAR(sum(*costs), parts.mean->step, 1e-12 * parts.mean->step);
  if (costs->gemm_alone) {
    EXPECT_NEAR(*costs->gemm_alone + *costs->gemm_overlap, costs->gemm, 1e-12 * costs->gemm);
  }
  if (costs->imbalance) {
    EXPECT_NEAR(*costs->imbalance + *costs->noise, costs->waiting, 1e-12 * parts.mean->step);
  }
  return *costs;
}

/// GEMM, all-reduce along dp on the same stream, update.
Script training() { return Script{}.compute().all_reduce(Axis::dp).op(program::OpKind::update); }

/// Two steps of 100 ns on 4 ranks, each with a GEMM of gemms[rank].
results::PointData four_ranks(const std::vector<int>& gemms) {
  results::PointData point = alike({.dp = 4}, training());
  const int last = std::ranges::max(gemms);
  for (int step = 0; step < 2; ++step) {
    timeline::Timeline steps;
    for (int rank = 0; rank < 4; ++rank) {
      const int own = gemms[static_cast<std::size_t>(rank)];
      steps.ranks.push_back(
          trace(rank, {0, 100}, {{0, own}, {own, last + 10}, {last + 10, last + 20}}));
    }
    add_step(point, steps);
  }
  return point;
}

TEST(StepCosts, AreThePartsOfTheStep) {
  results::PointData point = four_ranks({60, 60, 60, 60});
  // Nothing ran beside the GEMMs, so what they take alone says nothing.
  for (int rank = 0; rank < 4; ++rank) point.solo_times.push_back(solo(rank, {55, 0, 10}));
  const StepCosts costs = costs_of(point);
  EXPECT_NEAR(costs.gemm, 60 * ns, tolerance);
  ASSERT_TRUE(costs.gemm_alone && costs.gemm_overlap);
  EXPECT_NEAR(*costs.gemm_alone, 60 * ns, tolerance);
  EXPECT_NEAR(*costs.gemm_overlap, 0, tolerance);
  EXPECT_NEAR(costs.other_compute, 10 * ns, tolerance);
  ASSERT_EQ(costs.transfer.size(), 1U);
  EXPECT_NEAR(costs.transfer.at(Axis::dp), 10 * ns, tolerance);
  EXPECT_NEAR(costs.waiting, 0, tolerance);
  EXPECT_NEAR(costs.other, 20 * ns, tolerance);
}

TEST(StepCosts, CallOneSlowRankAmongLikeOnesImbalance) {
  // Whichever it is takes 20 ns longer, also alone: shapes are the same, so it is not they.
  for (std::size_t slow = 0; slow < 4; ++slow) {
    std::vector<int> gemms(4, 50);
    gemms[slow] = 70;
    results::PointData point = four_ranks(gemms);
    for (int rank = 0; rank < 4; ++rank) {
      point.solo_times.push_back(solo(rank, {gemms[static_cast<std::size_t>(rank)], 0, 10}));
    }
    for (std::uint32_t step = 0; step < 6; ++step) {
      results::OpSums& sums = point.op_sums.emplace_back(results::OpSums{.step = step});
      for (const int gemm : gemms) sums.gemm.push_back(gemm * ns);
      sums.other_compute = sums.copies = sums.communication = {0, 0, 0, 0};
    }
    const StepCosts costs = costs_of(point);
    EXPECT_NEAR(costs.gemm, 50 * ns, tolerance);
    EXPECT_NEAR(*costs.gemm_alone, 50 * ns, tolerance);
    EXPECT_NEAR(*costs.gemm_overlap, 0, tolerance);
    // Three ranks wait 20 ns, and the fourth computes 20 ns more.
    ASSERT_TRUE(costs.imbalance);
    EXPECT_NEAR(*costs.imbalance, 20 * ns, tolerance);
    EXPECT_NEAR(*costs.noise, 0, tolerance);
  }
}

TEST(StepCosts, KeepProgramsThatDifferApart) {
  // Two programs of two ranks each: that one has more to do is not imbalance of its ranks.
  const Script more = Script{}.compute().compute();
  results::PointData point = samples::point(
      {.dp = 4}, {Script{}.compute(), more, {}, {}},
      {{trace(0, {0, 80}, {{0, 40}}), trace(1, {0, 80}, {{0, 40}}),
        trace(2, {0, 80}, {{0, 40}, {40, 80}}), trace(3, {0, 80}, {{0, 40}, {40, 80}})}});
  point.outline.outline_of_rank = {0, 0, 1, 1};
  point.outline.outlines.resize(2);
  const StepCosts costs = costs_of(point);
  EXPECT_NEAR(costs.gemm, 60 * ns, tolerance);
  EXPECT_NEAR(costs.waiting, 0, tolerance);
  EXPECT_NEAR(costs.other, 20 * ns, tolerance);
}

TEST(StepCosts, FindWhatOverlapCostsGemms) {
  // The all-reduce on the second stream slows the second GEMM from 30 to 45 ns.
  results::PointData point =
      alike({.dp = 2}, Script{}.compute(0).all_reduce(Axis::dp, 1).compute(0));
  for (int step = 0; step < 2; ++step) {
    const std::vector<std::pair<int, int>> spans{{0, 30}, {30, 70}, {30, 75}};
    add_step(point, {{trace(0, {0, 75}, spans), trace(1, {0, 75}, spans)}});
  }
  point.solo_times = {solo(0, {30, 0, 30}), solo(1, {30, 0, 30})};
  const StepCosts costs = costs_of(point);
  EXPECT_NEAR(*costs.gemm_alone, 60 * ns, tolerance);
  EXPECT_NEAR(*costs.gemm_overlap, 15 * ns, tolerance);
  EXPECT_NEAR(costs.transfer.at(Axis::dp), 0, tolerance);  // hidden
}

TEST(StepCosts, CountTimeInWhichTwoStreamsComputeOnce) {
  const results::PointData point =
      samples::point({}, {Script{}.compute(0).op(program::OpKind::add, 1)},
                     {{trace(0, {0, 80}, {{0, 60}, {40, 80}})}});
  const StepCosts costs = costs_of(point);
  EXPECT_NEAR(costs.gemm, 60 * ns, tolerance);
  EXPECT_NEAR(costs.other_compute, 20 * ns, tolerance);
}

TEST(StepCosts, DoNotSeparateGemmsWithoutSoloTimesOfAllTracedRanks) {
  results::PointData point =
      alike({.dp = 2}, Script{}.compute(0).all_reduce(Axis::dp, 1).compute(0));
  const std::vector<std::pair<int, int>> spans{{0, 30}, {30, 70}, {30, 75}};
  for (int step = 0; step < 2; ++step) {
    add_step(point, {{trace(0, {0, 75}, spans), trace(1, {0, 75}, spans)}});
  }
  EXPECT_FALSE(costs_of(point).gemm_alone);
  point.solo_times.push_back(solo(0, {30, 0, 30}));
  EXPECT_FALSE(costs_of(point).gemm_alone);
  EXPECT_FALSE(costs_of(point).gemm_overlap);
  point.solo_times.push_back(solo(1, {30, 0}));  // of another program
  EXPECT_FALSE(costs_of(point).gemm_alone);
  point.solo_times.back() = solo(1, {30, 0, 30});
  EXPECT_TRUE(costs_of(point).gemm_alone);
}

TEST(StepCosts, OfTwoLikeRanksTheFasterIsTypical) {
  results::PointData point = alike({.dp = 2}, training());
  for (int step = 0; step < 2; ++step) {
    add_step(point, {{trace(0, {0, 100}, {{0, 40}, {40, 80}, {80, 100}}),
                      trace(1, {0, 100}, {{0, 70}, {70, 80}, {80, 100}})}});
  }
  const StepCosts costs = costs_of(point);
  EXPECT_NEAR(costs.gemm, 40 * ns, tolerance);
  EXPECT_NEAR(costs.waiting, (30 + 30) / 2 * ns, tolerance);  // one waits, one computes 30 more
}

TEST(StepCosts, CallWhatOpsTakeNowAndThenNoise) {
  // The GEMM takes 40 ns but for one step of three.
  results::PointData point = samples::point({}, {Script{}.compute()}, {});
  point.traces.clear();
  for (const int gemm : {40, 70, 40}) add_step(point, {{trace(0, {0, gemm}, {{0, gemm}})}});
  const StepCosts costs = costs_of(point);
  EXPECT_NEAR(costs.gemm, 40 * ns, tolerance);
  ASSERT_TRUE(costs.noise);
  EXPECT_NEAR(*costs.noise, 10 * ns, tolerance);
}

TEST(StepCosts, OfTwoStepsNeitherIsTheUsualOne) {
  results::PointData point = samples::point({}, {Script{}.compute()}, {});
  point.traces.clear();
  for (const int gemm : {40, 70}) add_step(point, {{trace(0, {0, gemm}, {{0, gemm}})}});
  const StepCosts costs = costs_of(point);
  EXPECT_NEAR(costs.gemm, 55 * ns, tolerance);
  ASSERT_TRUE(costs.noise);
  EXPECT_NEAR(*costs.noise, 0, tolerance);
}

TEST(StepCosts, DoNotDivideTheWaitingOfOneTracedStep) {
  results::PointData point = four_ranks({50, 50, 70, 50});
  point.traces.resize(1);
  const StepCosts costs = costs_of(point);
  EXPECT_NEAR(costs.waiting, 20 * ns, tolerance);
  EXPECT_FALSE(costs.imbalance);
  EXPECT_FALSE(costs.noise);
}

TEST(StepCosts, AreAbsentWithoutTraces) {
  const results::PointData point = alike({.dp = 4}, training());
  EXPECT_FALSE(step_costs(point, breakdown(point)));
}

TEST(StepCosts, LeadToAnExactWaterfall) {
  // From one rank with twice the GEMMs to two, of which one is slow, with an axis more.
  results::PointData one = samples::point({}, {Script{}.compute().compute().copy()},
                                          {{trace(0, {0, 99}, {{0, 40}, {41, 80}, {80, 95}})}});
  results::PointData four = four_ranks({23, 21, 29, 22});
  for (int rank = 0; rank < 4; ++rank) four.solo_times.push_back(solo(rank, {20, 0, 9}));
  for (const double work : {1.0, 4.0}) {  // strong and weak scaling
    const StepLoss base{
        .step = 97 * ns, .traced = breakdown(one).mean->step, .work = 1, .costs = costs_of(one)};
    const StepLoss point{.step = 103 * ns,
                         .traced = breakdown(four).mean->step,
                         .work = work,
                         .ranks = 4,
                         .costs = costs_of(four)};
    const Waterfall found = waterfall(point, base);
    double lost = 0;
    for (const LostTime& at : found.lost) lost += at.seconds;
    EXPECT_NEAR(found.ideal, 97 * ns * work / 4, 1e-12 * found.ideal);
    EXPECT_NEAR(lost, found.measured - found.ideal, 1e-12 * found.measured);
  }
}

}  // namespace
}  // namespace isoscale::analysis
