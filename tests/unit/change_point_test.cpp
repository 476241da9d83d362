// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "statistics/trend.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "series.hpp"

namespace isoscale::analysis {
namespace {

std::vector<double> levels(std::size_t first, double high, std::size_t then, double low) {
  std::vector<double> samples(first, high);
  samples.insert(samples.end(), then, low);
  return samples;
}

TEST(ChangePoint, OfTwoLevelsWorkedOutByHand) {
  // Mid-ranks 12.5 and 4.5; K = |2 * 8 * 12.5 - 8 * 17| = 64; 2 exp(-6 * 64^2 / (16^3 + 16^2)).
  const auto change = statistics::change_point(levels(8, 2, 8, 1));
  ASSERT_TRUE(change);
  EXPECT_EQ(change->first, 8U);
  EXPECT_NEAR(change->probability, 2 * std::exp(-24576.0 / 4352.0), 1e-12);
}

TEST(ChangePoint, OfConstantSamplesIsNoSurprise) {
  EXPECT_EQ(statistics::change_point(std::vector<double>(30, 1.0))->probability, 1.0);
}

TEST(ChangePoint, IsAbsentWhenUndefined) {
  EXPECT_FALSE(statistics::change_point(std::array{1.0}));
  EXPECT_FALSE(statistics::change_point({}));
  EXPECT_FALSE(statistics::change_point(std::array{1.0, std::numeric_limits<double>::quiet_NaN()}));
}

TEST(LastChange, IsFoundBehindEarlierOnes) {
  std::vector<double> samples = levels(20, 3, 20, 2);
  samples.insert(samples.end(), 40, 1.0);
  EXPECT_EQ(statistics::last_change(samples, 0.01), 40U);
}

TEST(LastChange, MayBeTooSmallToCount) {
  EXPECT_EQ(statistics::last_change(levels(30, 1.004, 30, 1), 0.005), 0U);
  EXPECT_EQ(statistics::last_change(levels(30, 1.006, 30, 1), 0.005), 30U);
}

TEST(LastChange, CannotBeSeenInFifteenSamples) {
  EXPECT_EQ(statistics::last_change(levels(7, 9, 8, 1), 0.005), 0U);
  EXPECT_EQ(statistics::last_change(levels(8, 9, 8, 1), 0.005), 8U);
}

TEST(LastChange, IsRarelySeenWhereThereIsNone) {
  int seen = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    seen +=
        statistics::last_change(samples::Autoregressive{seed, 0, 0.05}.take(60), 0.005) > 0 ? 1 : 0;
  }
  EXPECT_LE(seen, 15);  // 1% of 1,000, and the error of counting
}

TEST(LastChange, OfAWarmUpUnderNoiseIsFoundWithinAFewSteps) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::vector<double> times = samples::Autoregressive{seed, 0, 0.01}.take(60);
    for (std::size_t i = 0; i < 20; ++i) times[i] *= 1.1;
    const std::size_t change = statistics::last_change(times, 0.005);
    EXPECT_GE(change, 20U) << seed;
    found += change <= 26 ? 1 : 0;
  }
  EXPECT_GE(found, 97) << "another change is seen by chance in 1% at most";
}

}  // namespace
}  // namespace isoscale::analysis
