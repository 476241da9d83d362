// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "simulate/noise.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace isoscale::simulate {
namespace {

// Tables of the normal distribution.
TEST(Normal, QuantilesAreThoseOfTables) {
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-9);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-9);
  EXPECT_NEAR(normal_quantile(0.001), -3.090232306167813, 1e-9);
  EXPECT_NEAR(normal_quantile(1e-6), -4.753424308822899, 1e-8);
  for (const double p : {1e-5, 0.01, 0.2, 0.6, 0.99}) {
    EXPECT_NEAR(normal_cdf(normal_quantile(p)), p, 1e-12);
  }
}

// Closed forms of two and three draws; Harter 1961 for more.
TEST(Normal, LargestOfManyDraws) {
  const double pi = std::numbers::pi;
  EXPECT_NEAR(largest_normal(1).mean, 0, 1e-6);
  EXPECT_NEAR(largest_normal(1).variance, 1, 1e-5);
  EXPECT_NEAR(largest_normal(2).mean, 1 / std::sqrt(pi), 1e-6);
  EXPECT_NEAR(largest_normal(2).variance, 1 - 1 / pi, 1e-5);
  EXPECT_NEAR(largest_normal(3).mean, 1.5 / std::sqrt(pi), 1e-6);
  EXPECT_NEAR(largest_normal(10).mean, 1.53875, 1e-5);
  EXPECT_NEAR(largest_normal(100).mean, 2.50759, 1e-5);
  EXPECT_NEAR(largest_normal(1000).mean, 3.24144, 1e-5);
}

TEST(Normal, QuickDrawsHaveTheDistributionsMoments) {
  double sum = 0, squares = 0, within = 0;
  constexpr int count = 100000;
  for (std::uint64_t key = 0; key < count; ++key) {
    const double draw = quick_normal(mixed(key));
    sum += draw;
    squares += draw * draw;
    within += std::abs(draw) < 1.96 ? 1 : 0;
  }
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(squares / count, 1, 0.01);
  EXPECT_NEAR(within / count, 0.95, 0.003);
}

TEST(Normal, KeysGiveEvenDraws) {
  double sum = 0, squares = 0;
  constexpr int count = 100000;
  for (std::uint64_t key = 0; key < count; ++key) {
    const double draw = uniform(key);
    ASSERT_GT(draw, 0);
    ASSERT_LT(draw, 1);
    sum += draw;
    squares += draw * draw;
  }
  EXPECT_NEAR(sum / count, 1.0 / 2, 0.005);
  EXPECT_NEAR(squares / count, 1.0 / 3, 0.005);
}

}  // namespace
}  // namespace isoscale::simulate
