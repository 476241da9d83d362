// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "statistics/estimate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace isoscale::analysis {
namespace {

/// 1, 2, ..., n in an order without correlation between neighbours.
std::vector<double> shuffled(std::size_t n) {
  std::vector<double> samples(n);
  std::iota(samples.begin(), samples.end(), 1.0);
  std::mt19937 engine{12345};
  do {
    for (std::size_t i = n - 1; i > 0; --i) std::swap(samples[i], samples[engine() % (i + 1)]);
  } while (n >= 8 && std::abs(*statistics::autocorrelation(samples)) >
                         0.5 / std::sqrt(static_cast<double>(n)));
  return samples;
}

TEST(Median, OfOddAndEvenCounts) {
  EXPECT_EQ(statistics::median(std::array{3.0, 1.0, 2.0}), 2.0);
  EXPECT_EQ(statistics::median(std::array{4.0, 1.0, 2.0, 3.0}), 2.5);
  EXPECT_EQ(statistics::median(std::array{7.0}), 7.0);
}

TEST(Median, IsAbsentWhenUndefined) {
  EXPECT_FALSE(statistics::median({}).has_value());
  EXPECT_FALSE(
      statistics::median(std::array{1.0, std::numeric_limits<double>::quiet_NaN()}).has_value());
}

TEST(Autocorrelation, OfASeriesWorkedOutByHand) {
  // 1 ... 8: deviations -3.5 ... 3.5, sum of squares 42, lag-1 products sum to 26.25.
  EXPECT_DOUBLE_EQ(*statistics::autocorrelation(std::array{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}),
                   0.625);
  // An alternating series: 7 products of -1 over 8 squares of 1.
  EXPECT_DOUBLE_EQ(*statistics::autocorrelation(std::array{1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 1.0, 3.0}),
                   -0.875);
}

TEST(Autocorrelation, IsAbsentWhenUndefined) {
  EXPECT_FALSE(statistics::autocorrelation(std::vector<double>(7, 1.0)).has_value());
  EXPECT_FALSE(
      statistics::autocorrelation(std::array{1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0}).has_value());
  EXPECT_FALSE(statistics::autocorrelation(std::vector<double>(100, 0.1)).has_value())
      << "no variance";
}

struct Ranks {
  std::size_t n;
  double lower, upper;
};

/// The ranks that tables of the sign test give for 95%: the largest l with
/// sum of C(n, k) over k < l at most 0.025 * 2^n, and n + 1 - l.
TEST(Estimate, IntervalIsThatOfTheBinomialTables) {
  constexpr std::array table{
      Ranks{6, 1, 6},          Ranks{8, 1, 8},    Ranks{9, 2, 8},     Ranks{10, 2, 9},
      Ranks{12, 3, 10},        Ranks{15, 4, 12},  Ranks{20, 6, 15},   Ranks{25, 8, 18},
      Ranks{30, 10, 21},       Ranks{50, 18, 33}, Ranks{100, 40, 61}, Ranks{1000, 469, 532},
      Ranks{5000, 2431, 2570},
  };
  for (const Ranks& expected : table) {
    const auto samples = shuffled(expected.n);
    const auto result = statistics::estimate(samples);
    ASSERT_TRUE(result && result->lower && result->upper) << "n = " << expected.n;
    EXPECT_EQ(result->block, 1U) << "n = " << expected.n;
    EXPECT_EQ(*result->lower, expected.lower) << "n = " << expected.n;
    EXPECT_EQ(*result->upper, expected.upper) << "n = " << expected.n;
    EXPECT_EQ(result->median, static_cast<double>(expected.n + 1) / 2) << "n = " << expected.n;
    EXPECT_EQ(result->minimum, 1.0);
    EXPECT_EQ(result->maximum, static_cast<double>(expected.n));
    EXPECT_EQ(result->samples, expected.n);
  }
}

TEST(Estimate, GivesNoIntervalBelowSixSamples) {
  const auto result = statistics::estimate(std::array{5.0, 1.0, 4.0, 2.0, 3.0});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->median, 3.0);
  EXPECT_FALSE(result->lower.has_value());
  EXPECT_FALSE(result->upper.has_value());
  EXPECT_FALSE(statistics::relative_half_width(*result).has_value());
}

TEST(Estimate, IsAbsentWithoutSamplesAndForWhatIsNotANumber) {
  EXPECT_FALSE(statistics::estimate({}).has_value());
  EXPECT_FALSE(
      statistics::estimate(std::array{1.0, std::numeric_limits<double>::infinity()}).has_value());
}

TEST(Estimate, ConstantSamplesHaveAnIntervalOfNoWidth) {
  const auto result = statistics::estimate(std::vector<double>(20, 0.3));
  ASSERT_TRUE(result && result->lower);
  EXPECT_EQ(*result->lower, 0.3);
  EXPECT_EQ(*result->upper, 0.3);
  EXPECT_EQ(*statistics::relative_half_width(*result), 0.0);
}

TEST(Estimate, ASpikeMovesNothing) {
  std::vector<double> samples = shuffled(50);
  *std::ranges::max_element(samples) = 1e9;
  const auto result = statistics::estimate(samples);
  EXPECT_EQ(result->median, 25.5);
  EXPECT_EQ(*result->lower, 18.0);
  EXPECT_EQ(*result->upper, 33.0);
}

TEST(RelativeHalfWidth, IsHalfTheIntervalOverTheMedian) {
  EXPECT_DOUBLE_EQ(*statistics::relative_half_width({.median = 8, .lower = 7.5, .upper = 9.5}),
                   0.125);
  EXPECT_FALSE(
      statistics::relative_half_width({.median = 0, .lower = 0.0, .upper = 0.0}).has_value());
}

TEST(Estimate, ADriftHasNoInterval) {
  std::vector<double> samples(60);
  std::iota(samples.begin(), samples.end(), 100.0);
  const auto result = statistics::estimate(samples);
  ASSERT_TRUE(result);
  EXPECT_GT(result->block, 1U);
  EXPECT_FALSE(result->lower.has_value());
  EXPECT_EQ(result->median, 129.5) << "of all samples where there are no blocks";
}

/// How often the interval holds the true median over seeded series x = phi x + noise. `noise` is a
/// sum of 12 uniforms, written out so that every standard library draws the same.
struct Coverage {
  double share = 0;     ///< of the intervals
  double existing = 0;  ///< share of series that had an interval
};
Coverage coverage(double phi, std::size_t n, int series) {
  std::mt19937_64 engine{99};
  const auto noise = [&engine] {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += std::ldexp(static_cast<double>(engine() >> 11U), -53);
    return sum;
  };
  int existing = 0;
  int holding = 0;
  std::vector<double> samples(n);
  for (int i = 0; i < series; ++i) {
    double state = noise() / std::sqrt(1 - phi * phi);
    for (double& sample : samples) {
      sample = 20 + state;
      state = phi * state + noise();
    }
    const auto result = statistics::estimate(samples);
    if (!result->lower) continue;
    ++existing;
    if (*result->lower <= 20 && 20 <= *result->upper) ++holding;
  }
  return {.share = static_cast<double>(holding) / existing,
          .existing = static_cast<double>(existing) / series};
}

// 2000 series: the standard error of a share of 95% is half a percent.
TEST(Coverage, IsNinetyFivePercentOfIndependentSamples) {
  for (const std::size_t n : {6U, 10U, 20U, 50U, 200U}) {
    const Coverage result = coverage(0.0, n, 2000);
    EXPECT_GT(result.share, 0.94) << "n = " << n;
    EXPECT_LT(result.share, 0.995) << "n = " << n << ": wider than it needs to be";
    EXPECT_GT(result.existing, 0.98) << "n = " << n;
  }
}

TEST(Coverage, HoldsUnderAutocorrelation) {
  struct Case {
    double phi;
    std::size_t n;
  };
  for (const Case& at : {Case{0.3, 100}, Case{0.6, 200}, Case{0.8, 400}, Case{0.9, 1000}}) {
    const Coverage result = coverage(at.phi, at.n, 2000);
    EXPECT_GT(result.share, 0.93) << "phi = " << at.phi;
    EXPECT_GT(result.existing, 0.9) << "phi = " << at.phi;
  }
}

}  // namespace
}  // namespace isoscale::analysis
