// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/run_noise.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "run_samples.hpp"

namespace isoscale::analysis {
namespace {

constexpr int ranks = 16, node_ranks = 4, steps = 2000;

simulate::Layout layout() {
  simulate::Layout result;
  for (int rank = 0; rank < ranks; ++rank) result.node_of_rank.push_back(rank / node_ranks);
  return result;
}

struct Drawn {
  double rank = 0, node = 0, all = 0;
};

/// 10 ms of compute a step, times factors of the step, the node and the rank, and one of its own.
results::PointData drawn(Drawn spread, const std::vector<double>& standing = {}) {
  std::mt19937_64 random{5};
  std::normal_distribution<double> normal;
  results::PointData point = samples::point(
      {.dp = ranks}, std::vector<samples::Script>(ranks, samples::Script{}.compute()), {});
  point.outline.outline_of_rank.assign(ranks, 0);
  point.traces.clear();
  for (int step = 0; step < steps; ++step) {
    point.step_times.emplace_back(ranks, 0.012);
    results::OpSums& sums = point.op_sums.emplace_back();
    sums.step = static_cast<std::uint32_t>(step);
    const double of_step = 1 + spread.all * normal(random);
    double of_node = 1;
    for (int rank = 0; rank < ranks; ++rank) {
      if (rank % node_ranks == 0) of_node = 1 + spread.node * normal(random);
      const double mine = standing.empty() ? 1 : standing[static_cast<std::size_t>(rank)];
      const double time = 0.01 * of_step * of_node * (1 + spread.rank * normal(random)) * mine;
      sums.gemm.push_back(0.7 * time);
      sums.other_compute.push_back(0.2 * time);
      sums.copies.push_back(0.1 * time);
      sums.communication.push_back(0.005);
    }
  }
  return point;
}

TEST(NoiseOf, PartsNodesFromRanks) {
  const simulate::Noise noise = noise_of(drawn({.rank = 0.01, .node = 0.03}), layout(), 0);
  EXPECT_NEAR(noise.rank, 0.01, 0.0002);
  EXPECT_NEAR(noise.node, 0.03, 0.0009);
  EXPECT_TRUE(noise.standing.empty());
}

/// What all ranks share makes none wait.
TEST(NoiseOf, LeavesOutWhatAllRanksShare) {
  const simulate::Noise noise = noise_of(drawn({.rank = 0.01, .all = 0.1}), layout(), 0);
  EXPECT_NEAR(noise.rank, 0.01, 0.0003);
  EXPECT_LT(noise.node, 0.001);
}

TEST(NoiseOf, FindsRanksThatAreAlwaysSlow) {
  std::vector<double> standing(ranks, 1);
  standing[3] = 1.2;
  const simulate::Noise noise = noise_of(drawn({.rank = 0.01}, standing), layout(), 0);
  ASSERT_EQ(noise.standing.size(), static_cast<std::size_t>(ranks));
  EXPECT_NEAR(noise.standing[3], 1.2, 0.002);
  EXPECT_NEAR(noise.standing[4], 1, 0.002);
  EXPECT_NEAR(noise.rank, 0.01, 0.0002);
}

/// 100 ops of 3% each make 0.3% of a step; the rest of its 1% is the rank's.
TEST(NoiseOf, TakesSingleOpsOutOfTheRanks) {
  results::PointData point = drawn({.rank = 0.01});
  samples::Script script;
  std::vector<std::pair<int, int>> spans;
  for (int op = 0; op < 100; ++op) {
    script.compute();
    spans.emplace_back(op * 10, op * 10 + 10);
  }
  point.outline.outlines = {script.outline()};
  point.traces = {{{samples::trace(0, {0, 1000}, spans)}}};
  EXPECT_NEAR(noise_of(point, layout(), 0.03).rank, std::sqrt(1e-4 - 9e-6), 0.0002);
}

TEST(NoiseOf, KeepsDeviationsAsTheyWere) {
  const simulate::Noise noise = noise_of(drawn({.rank = 0.02}), layout(), 0);
  ASSERT_GE(noise.draws.size(), 4000U);
  double squares = 0;
  for (const double at : noise.draws) squares += at * at;
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(noise.draws.size())), 0.02, 0.0006);
  EXPECT_LT(noise.draws.front(), -0.05);
  EXPECT_GT(noise.draws.back(), 0.05);
}

TEST(NoiseOf, SaysNothingOfOneRankOrFewSteps) {
  results::PointData point = drawn({.rank = 0.02});
  point.op_sums.resize(2);
  const simulate::Noise noise = noise_of(point, layout(), 0);
  EXPECT_EQ(noise.rank, 0);
  EXPECT_TRUE(noise.draws.empty());
  EXPECT_EQ(noise.launch, assumed_launch_deviation);
}

results::RunData launch(double step_time) {
  results::RunData run;
  results::PointData& point = run.points.emplace_back();
  point.workload = "dp";
  point.ranks = 2;
  for (int step = 0; step < 10; ++step) point.step_times.push_back({step_time, step_time * 0.9});
  return run;
}

/// Of 1, 1.04 and 1: logarithms 0, 0.0392, 0; their standard deviation.
TEST(LaunchDeviation, IsThatOfMedians) {
  const results::RunData a = launch(1), b = launch(1.04), c = launch(1);
  const std::vector<const results::RunData*> runs{&a, &b, &c};
  EXPECT_NEAR(launch_deviation(runs), std::log(1.04) / std::sqrt(3.0), 1e-9);
  const std::vector<const results::RunData*> one{&a};
  EXPECT_EQ(launch_deviation(one), assumed_launch_deviation);
}

TEST(StepDeviation, IsNotMovedByOneSlowStep) {
  results::PointData point;
  for (const double time : {0.98, 0.99, 1.0, 1.01, 1.02, 9.0, 1.0})
    point.step_times.push_back({time});
  EXPECT_NEAR(median_step(point), 1, 1e-12);
  EXPECT_NEAR(step_deviation(point), 1.4826 * 0.01, 1e-9);
  EXPECT_EQ(step_deviation({}), 0);
}

}  // namespace
}  // namespace isoscale::analysis
