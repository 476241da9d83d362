// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/stragglers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "cause_samples.hpp"
#include "series.hpp"

namespace isoscale::analysis {
namespace {

using samples::alike;
using samples::Draw;
using samples::Script;

constexpr int ops_in_step = 24;

/// How a rank's GEMMs vary; relative.
struct Noise {
  double of_step = 0;  ///< alike for all GEMMs of a rank's step
  double of_op = 0;
  double of_rank = 0;  ///< persistent
  double of_all = 0;   ///< alike for all ranks in a step
};

/// How much longer `rank` takes in step number `step`.
using Factor = std::function<double(int rank, int step)>;

Factor slow_from(int slow, double factor, int first = 0) {
  return [=](int rank, int step) { return rank == slow && step >= first ? factor : 1.0; };
}
double nobody(int, int) { return 1; }

struct Shape {
  int ranks = 8, steps = 20;
  int named = 98;  ///< least of 100 runs in which the slow rank is named
};

/// Traced every second step of a run, seconds of GEMMs on each rank.
void simulate(results::PointData& point, int steps, const Noise& noise, const Factor& factor,
              std::uint64_t seed) {
  Draw draw{seed};
  std::vector<double> persistent;
  for (int rank = 0; rank < point.ranks; ++rank) {
    persistent.push_back(1 + noise.of_rank * draw.normal());
  }
  for (int step = 0; step < steps; ++step) {
    const double all = 1 + noise.of_all * draw.normal();
    results::OpSums& sums =
        point.op_sums.emplace_back(results::OpSums{.step = 100 + 2 * static_cast<unsigned>(step)});
    for (int rank = 0; rank < point.ranks; ++rank) {
      double ops = 0;
      for (int op = 0; op < ops_in_step; ++op) ops += 1e-3 * (1 + noise.of_op * draw.normal());
      sums.gemm.push_back(ops * all * persistent[static_cast<std::size_t>(rank)] *
                          factor(rank, step) * (1 + noise.of_step * draw.normal()));
    }
  }
}

std::vector<efficiency::SlowRank> found(const Shape& shape, const Noise& noise,
                                        const Factor& factor, std::uint64_t seed) {
  results::PointData point = alike({.dp = shape.ranks}, Script{}.compute());
  simulate(point, shape.steps, noise, factor, seed);
  return efficiency::slow_ranks(point);
}

const std::vector<Noise> noises{{.of_step = 0.02},
                                {.of_op = 0.02},
                                {.of_step = 0.02, .of_rank = 0.01},
                                {.of_step = 0.02, .of_all = 0.05}};
const std::vector<Shape> shapes{
    {.steps = 6, .named = 90}, {.steps = 10}, {.steps = 20}, {.steps = 64}, {.ranks = 64}};

std::string describe(const Shape& shape, const Noise& noise) {
  return "ranks " + std::to_string(shape.ranks) + ", steps " + std::to_string(shape.steps) +
         ", step " + std::to_string(noise.of_step) + ", op " + std::to_string(noise.of_op) +
         ", rank " + std::to_string(noise.of_rank);
}

TEST(SlowRanks, AreNamedAndNoOthersAndNotFoundInNoise) {
  for (const Shape& shape : shapes) {
    for (const Noise& noise : noises) {
      int right = 0, alarms = 0;
      for (std::uint64_t seed = 0; seed < 100; ++seed) {
        const auto slow = found(shape, noise, slow_from(5, 1.10), seed);
        right += slow.size() == 1 && slow[0].rank == 5 && !slow[0].since ? 1 : 0;
        alarms += found(shape, noise, nobody, seed).empty() ? 0 : 1;
      }
      EXPECT_GE(right, shape.named) << describe(shape, noise);
      EXPECT_LE(alarms, 2) << describe(shape, noise);
    }
  }
}

TEST(SlowRanks, HaveTheirFactorWithItsInterval) {
  const auto slow = found({}, {.of_step = 0.02}, slow_from(3, 1.25), 1);
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_NEAR(slow[0].factor, 1.25, 0.02);
  ASSERT_TRUE(slow[0].lower && slow[0].upper);
  EXPECT_LT(*slow[0].lower, 1.25);
  EXPECT_GT(*slow[0].upper, 1.25);
  EXPECT_FALSE(slow[0].by_rate);
}

TEST(SlowRanks, OfTwoAreComparedWithEachOther) {
  int right = 0, alarms = 0, at_the_end = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto slow = found({.ranks = 2}, {.of_step = 0.02}, slow_from(1, 1.15), seed);
    right += slow.size() == 1 && slow[0].rank == 1 ? 1 : 0;
    alarms += found({.ranks = 2}, {.of_step = 0.02}, nobody, seed).empty() ? 0 : 1;
    // Ranks that differ by 3% for good: some are 5% above the middle, and none is out of line.
    at_the_end += found({}, {.of_step = 0.02, .of_rank = 0.03}, nobody, seed).empty() ? 0 : 1;
  }
  EXPECT_GE(right, 98);
  EXPECT_LE(alarms, 2);
  EXPECT_LE(at_the_end, 5);
}

TEST(SlowRanks, CanBeTwo) {
  const auto slow = found(
      {}, {.of_step = 0.02}, [](int rank, int) { return rank == 1 || rank == 6 ? 1.2 : 1.0; }, 1);
  ASSERT_EQ(slow.size(), 2U);
  EXPECT_EQ(slow[0].rank, 1);
  EXPECT_EQ(slow[1].rank, 6);
}

TEST(SlowRanks, SinceWhen) {
  // Slow from the 20th of 40 traced steps on, which is step 100 + 2 * 20.
  for (const double factor : {1.10, 1.5}) {
    int right = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      const auto slow = found({.steps = 40}, {.of_step = 0.02}, slow_from(5, factor, 20), seed);
      if (slow.size() != 1 || slow[0].rank != 5 || !slow[0].since) continue;
      const bool in_time = std::abs(static_cast<double>(*slow[0].since) - 140) <= 4;
      right += in_time && std::abs(slow[0].factor - factor) < 0.03 ? 1 : 0;
    }
    EXPECT_GE(right, 98) << factor;
  }
}

TEST(SlowRanks, AreForgivenOnceTheyAreNotSlowAnyMoreButNotOnceTheyAreLessSlow) {
  // Slow in the first 10 of 40 steps only.
  const auto early = [](int rank, int step) { return rank == 5 && step < 10 ? 1.1 : 1.0; };
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_THAT(found({.steps = 40}, {.of_step = 0.02}, early, seed), testing::IsEmpty());
  }
  const auto less = [](int rank, int step) {
    if (rank != 5) return 1.0;
    return step < 15 ? 1.4 : 1.2;
  };
  const auto slow = found({.steps = 40}, {.of_step = 0.01}, less, 1);
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_FALSE(slow[0].since);
}

TEST(SlowRanks, BelowSixStepsAreNotNamed) {
  EXPECT_THAT(found({.steps = 5}, {.of_step = 0.001}, slow_from(5, 1.5), 1), testing::IsEmpty());
  EXPECT_EQ(found({.steps = 6}, {.of_step = 0.001}, slow_from(5, 1.5), 1).size(), 1U);
}

/// Ranks that all play a program of their own, rank r with r + 1 times the FLOP of rank 0.
std::vector<efficiency::SlowRank> found_by_rate(double slow_factor, std::uint64_t seed) {
  results::PointData point =
      samples::point({.pp = 4}, std::vector<Script>(4, Script{}.compute()), {});
  point.flop_of_rank = {1e9, 2e9, 3e9, 4e9};
  simulate(
      point, 20, {.of_step = 0.02},
      [&](int rank, int) { return (rank + 1) * (rank == 2 ? slow_factor : 1.0); }, seed);
  return efficiency::slow_ranks(point);
}

TEST(SlowRanks, WithProgramsOfTheirOwnAreComparedByRate) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_THAT(found_by_rate(1, seed), testing::IsEmpty());
    EXPECT_THAT(found_by_rate(1.08, seed), testing::IsEmpty());  // shapes may be to blame
    const auto slow = found_by_rate(1.3, seed);
    ASSERT_EQ(slow.size(), 1U);
    EXPECT_EQ(slow[0].rank, 2);
    EXPECT_TRUE(slow[0].by_rate);
    EXPECT_NEAR(slow[0].factor, 1.3, 0.05);
  }
}

TEST(SlowRanks, AreNamedOnceWhereLikeRanksAndRatesTellTheSame) {
  // Ranks 0 to 3 are alike and rank 4 is alone; rank 1 is slow by both comparisons.
  results::PointData point =
      samples::point({.pp = 5}, std::vector<Script>(5, Script{}.compute()), {});
  point.outline.outline_of_rank = {0, 0, 0, 0, 1};
  point.flop_of_rank.assign(5, 1e9);
  simulate(point, 20, {.of_step = 0.02}, slow_from(1, 1.4), 1);
  const auto slow = efficiency::slow_ranks(point);
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_EQ(slow[0].rank, 1);
  EXPECT_FALSE(slow[0].by_rate);
}

TEST(SlowRanks, CannotBeToldWithoutRates) {
  results::PointData point =
      samples::point({.pp = 4}, std::vector<Script>(4, Script{}.compute()), {});
  simulate(point, 20, {}, slow_from(1, 2), 1);
  EXPECT_THAT(efficiency::slow_ranks(point), testing::IsEmpty());  // no FLOP known
  point.flop_of_rank = {1e9, 1e9, 0, 1e9};
  EXPECT_THAT(efficiency::slow_ranks(point), testing::IsEmpty());
  point.flop_of_rank[2] = 1e9;
  EXPECT_EQ(efficiency::slow_ranks(point).size(), 1U);
}

TEST(SlowRanks, AreNotToldFromStepsThatWereNotMeasured) {
  results::PointData point = alike({.dp = 8}, Script{}.compute());
  simulate(point, 20, {.of_step = 0.02}, slow_from(5, 1.2), 1);
  // Times that are none, of several ranks, in several steps: those steps do not count.
  point.op_sums[0].gemm[0] = std::numeric_limits<double>::quiet_NaN();
  point.op_sums[1].gemm[5] = 0;
  point.op_sums[2].gemm[3] = std::numeric_limits<double>::infinity();
  point.op_sums[3].gemm.clear();
  const auto slow = efficiency::slow_ranks(point);
  ASSERT_EQ(slow.size(), 1U);
  EXPECT_EQ(slow[0].rank, 5);
  for (results::OpSums& step : point.op_sums) step.gemm.assign(8, 0);
  EXPECT_THAT(efficiency::slow_ranks(point), testing::IsEmpty());
  // Others and steps are needed, too.
  EXPECT_THAT(efficiency::slow_ranks(alike({.dp = 8}, Script{}.compute())), testing::IsEmpty());
  EXPECT_THAT(found({.ranks = 1}, {}, slow_from(0, 2), 1), testing::IsEmpty());
}

}  // namespace
}  // namespace isoscale::analysis
