// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "statistics/estimate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace isoscale::analysis {
namespace {

TEST(OverLaunches, OneSaysNothingOfTheNext) {
  const auto one = statistics::over_launches(std::vector{2.0});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->median, 2.0);
  EXPECT_EQ(one->samples, 1U);
  EXPECT_FALSE(one->lower || one->upper);
  EXPECT_FALSE(statistics::launch_spread(*one));
}

TEST(OverLaunches, TwoHaveASpreadAndNoInterval) {
  const auto two = statistics::over_launches(std::vector{1.0, 3.0});
  EXPECT_EQ(two->median, 2.0);
  EXPECT_DOUBLE_EQ(*statistics::launch_spread(*two), 1.0);
  EXPECT_FALSE(two->lower || two->upper);
}

TEST(OverLaunches, ThreeHaveTheTIntervalOfTheirLogarithms) {
  // Logarithms -0.1, 0, 0.1: mean 0, standard deviation 0.1, t = 4.303 with 2 degrees of freedom.
  const std::vector medians{std::exp(-0.1), 1.0, std::exp(0.1)};
  const auto three = statistics::over_launches(medians);
  const double half = 4.303 * 0.1 / std::sqrt(3.0);
  EXPECT_EQ(three->median, 1.0);
  EXPECT_NEAR(*three->lower, std::exp(-half), 1e-12);
  EXPECT_NEAR(*three->upper, std::exp(half), 1e-12);
  EXPECT_NEAR(*statistics::launch_spread(*three), std::exp(0.1) - std::exp(-0.1), 1e-12);
}

TEST(OverLaunches, HoldsTheCentreAsOftenAsItPromises) {
  constexpr int trials = 2000;
  std::mt19937 random{7};
  std::normal_distribution<double> factor{0, 0.039};
  for (const std::size_t launches : {3U, 5U, 12U}) {
    int held = 0;
    for (int trial = 0; trial < trials; ++trial) {
      std::vector<double> medians(launches);
      for (double& median : medians) median = std::exp(factor(random));
      const auto estimate = statistics::over_launches(medians);
      held += *estimate->lower <= 1 && 1 <= *estimate->upper ? 1 : 0;
    }
    EXPECT_NEAR(held, trials * 0.95, trials * 0.02) << launches;
  }
}

TEST(OverLaunches, IsAbsentForWhatIsNoTime) {
  EXPECT_FALSE(statistics::over_launches({}));
  EXPECT_FALSE(statistics::over_launches(std::vector{1.0, 0.0}));
  EXPECT_FALSE(
      statistics::over_launches(std::vector{1.0, std::numeric_limits<double>::infinity()}));
}

}  // namespace
}  // namespace isoscale::analysis
