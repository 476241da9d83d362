// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "statistics/t_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace isoscale::analysis {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

/// P(T > t) by adding up the density, with Simpson's rule from 0.
double tail_by_density(double t, double freedom) {
  const double scale = std::exp(std::lgamma((freedom + 1) / 2) - std::lgamma(freedom / 2)) /
                       std::sqrt(freedom * std::numbers::pi);
  const auto density = [&](double x) {
    return scale * std::pow(1 + x * x / freedom, -(freedom + 1) / 2);
  };
  constexpr int strips = 20'000;
  const double width = t / strips;
  double sum = density(0) + density(t);
  for (int i = 1; i < strips; ++i) sum += (i % 2 == 1 ? 4 : 2) * density(i * width);
  return 0.5 - sum * width / 3;
}

TEST(StudentDistribution, TailIsTheIntegralOfTheDensity) {
  for (const double freedom : {1.0, 1.7, 2.0, 3.4, 4.0, 8.0, 29.5, 400.0}) {
    for (const double t : {0.01, 0.5, 1.0, 2.5, 6.0, 40.0}) {
      EXPECT_NEAR(statistics::student_tail(t, freedom), tail_by_density(t, freedom), 1e-9)
          << t << " of " << freedom;
      EXPECT_NEAR(statistics::student_tail(-t, freedom), 1 - statistics::student_tail(t, freedom),
                  1e-15);
    }
  }
  EXPECT_NEAR(statistics::student_tail(0, 3), 0.5, 1e-15);
  // One degree of freedom is Cauchy's: 1/2 - atan(t) / pi.
  EXPECT_NEAR(statistics::student_tail(12.706, 1), 0.5 - std::atan(12.706) / std::numbers::pi,
              1e-13);
}

TEST(StudentDistribution, QuantilesAreThoseOfTheTable) {
  for (std::size_t freedom = 1; freedom <= 30; ++freedom) {
    EXPECT_NEAR(statistics::student_quantile(0.025, static_cast<double>(freedom)),
                statistics::student_t(freedom), 5e-4);
  }
  EXPECT_NEAR(statistics::student_quantile(0.05, 8), 1.8595, 1e-4);
  EXPECT_NEAR(statistics::student_quantile(0.95, 8), -1.8595, 1e-4);
}

TEST(Welch, MeanAndItsVariance) {
  const auto mean = statistics::mean_of(std::vector{1.0, 2.0, 6.0});
  ASSERT_TRUE(mean);
  EXPECT_DOUBLE_EQ(mean->value, 3);
  EXPECT_DOUBLE_EQ(mean->variance, (4 + 1 + 9) / 2.0 / 3);
  EXPECT_EQ(mean->freedom, 2);
  EXPECT_FALSE(statistics::mean_of(std::vector{1.0}));
  EXPECT_FALSE(statistics::mean_of(std::vector{1.0, std::numeric_limits<double>::quiet_NaN()}));
}

TEST(Welch, DifferenceOfUnlikeSpreads) {
  const statistics::Mean a{.value = 10, .variance = 1, .freedom = 4};
  const statistics::Mean b{.value = 13, .variance = 3, .freedom = 2};
  const statistics::Mean of = difference(a, b);
  EXPECT_EQ(of.value, 3);
  EXPECT_EQ(of.variance, 4);
  EXPECT_DOUBLE_EQ(of.freedom, 16 / (1 / 4.0 + 9 / 2.0));
  const statistics::Located interval = located(of);
  EXPECT_NEAR(*interval.upper, 3 + 2 * statistics::student_quantile(0.025, of.freedom), 1e-12);
  EXPECT_NEAR(*interval.lower, 3 - 2 * statistics::student_quantile(0.025, of.freedom), 1e-12);
  EXPECT_NEAR(p_above(of, 1), tail_by_density(1, of.freedom), 1e-9);
  EXPECT_NEAR(p_below(of, 1), 1 - tail_by_density(1, of.freedom), 1e-9);
}

TEST(Welch, WithoutSpreadThereIsNoDoubt) {
  const statistics::Mean of = statistics::difference({.value = 1, .variance = 0, .freedom = 2},
                                                     {.value = 0.9, .variance = 0, .freedom = 2});
  EXPECT_EQ(p_below(of, -0.05), 0);
  EXPECT_EQ(p_above(of, -0.05), 1);
  EXPECT_EQ(*located(of).lower, of.value);
}

TEST(Welch, HolmAdjustsByWhatIsLeft) {
  // Sorted 0.005 * 4, 0.01 * 3, 0.03 * 2, 0.04 * 1; none may be below one before it.
  EXPECT_THAT(statistics::holm(std::vector{0.01, 0.04, 0.03, 0.005}),
              ElementsAre(DoubleNear(0.03, 1e-15), DoubleNear(0.06, 1e-15), DoubleNear(0.06, 1e-15),
                          DoubleNear(0.02, 1e-15)));
  EXPECT_THAT(statistics::holm(std::vector{0.5, 0.9}), ElementsAre(1, 1));
  EXPECT_TRUE(statistics::holm({}).empty());
}

}  // namespace
}  // namespace isoscale::analysis
