// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "statistics/estimate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "results/records/counted_steps.hpp"
#include "series.hpp"
#include "statistics/sample_flags.hpp"
#include "statistics/trend.hpp"

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

TEST(Median, IsTheMiddleAndAbsentWhenUndefined) {
  EXPECT_EQ(statistics::median(std::array{3.0, 1.0, 2.0}), 2.0);
  EXPECT_EQ(statistics::median(std::array{4.0, 1.0, 2.0, 3.0}), 2.5);
  EXPECT_EQ(statistics::median(std::array{7.0}), 7.0);
  EXPECT_FALSE(statistics::median({}));
  EXPECT_FALSE(statistics::median(std::array{1.0, std::numeric_limits<double>::quiet_NaN()}));
}

TEST(Autocorrelation, OfASeriesWorkedOutByHand) {
  // 1 ... 8: deviations -3.5 ... 3.5, sum of squares 42, lag-1 products sum to 26.25.
  EXPECT_DOUBLE_EQ(*statistics::autocorrelation(std::array{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}),
                   0.625);
  // An alternating series: 7 products of -1 over 8 squares of 1.
  EXPECT_DOUBLE_EQ(*statistics::autocorrelation(std::array{1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 1.0, 3.0}),
                   -0.875);
  EXPECT_FALSE(statistics::autocorrelation(std::vector<double>(7, 1.0)));
  EXPECT_FALSE(statistics::autocorrelation(std::array{1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0}));
  EXPECT_FALSE(statistics::autocorrelation(std::vector<double>(100, 0.1))) << "no variance";
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
  EXPECT_FALSE(result->lower || result->upper || statistics::relative_half_width(*result));
  EXPECT_FALSE(statistics::estimate({}));
  EXPECT_FALSE(statistics::estimate(std::array{1.0, std::numeric_limits<double>::infinity()}));
}

TEST(Estimate, ConstantSamplesHaveAnIntervalOfNoWidthAndASpikeMovesNothing) {
  const auto constant = statistics::estimate(std::vector<double>(20, 0.3));
  ASSERT_TRUE(constant && constant->lower);
  EXPECT_EQ(*constant->lower, 0.3);
  EXPECT_EQ(*constant->upper, 0.3);
  EXPECT_EQ(*statistics::relative_half_width(*constant), 0.0);
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

/// How often the interval holds the true median over seeded series x = phi x + noise.
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

TEST(NominalConfidence, IsThatOfTheLooks) {
  EXPECT_EQ(statistics::nominal_confidence(1, 1.5), 0.95);
  EXPECT_EQ(statistics::nominal_confidence(0, 1.5), 0.95);
  EXPECT_EQ(statistics::nominal_confidence(9, 1.0), 0.95) << "looks at the same samples";
  // Two equal groups: the second look has twice the samples. Pocock's table: 0.0294.
  EXPECT_NEAR(statistics::nominal_confidence(2, 2.0), 1 - 0.0294, 5e-5);
  results::PointData point;
  EXPECT_EQ(confidence_of(point), 0.95);
  point.looks = {.planned = 2, .made = 1, .growth = 2};
  EXPECT_NEAR(confidence_of(point), 1 - 0.0294, 5e-5);
}

TEST(NominalConfidence, RisesWithLooksAndWithTheirDistance) {
  double before = 0.95;
  for (int looks = 2; looks <= 30; ++looks) {
    const double confidence = statistics::nominal_confidence(looks, 1.5);
    EXPECT_GT(confidence, before) << looks;
    EXPECT_LT(confidence, 1 - 0.05 / looks) << "Bonferroni's bound is wider, " << looks;
    before = confidence;
  }
  EXPECT_LT(statistics::nominal_confidence(8, 1.1), statistics::nominal_confidence(8, 1.5));
  EXPECT_LT(statistics::nominal_confidence(8, 1.5), statistics::nominal_confidence(8, 3.0));
}

// 20,000 chains: the standard error of 5% is 0.15%.
TEST(NominalConfidence, KeepsFivePercentOfSimulatedChains) {
  constexpr int chains = 20'000;
  for (const int looks : {3, 12}) {
    const double confidence = statistics::nominal_confidence(looks, 1.5);
    const double correlation = std::sqrt(1 / 1.5);
    samples::Draw draw{5};
    int crossed = 0;
    for (int chain = 0; chain < chains; ++chain) {
      double z = draw.normal();
      bool is_out = false;
      for (int look = 0; look < looks; ++look) {
        is_out = is_out || std::erf(std::abs(z) / std::sqrt(2.0)) > confidence;
        z = correlation * z + std::sqrt(1 - correlation * correlation) * draw.normal();
      }
      crossed += is_out ? 1 : 0;
    }
    EXPECT_NEAR(crossed / double{chains}, 0.05, 0.006) << looks << " looks";
  }
}

TEST(Estimate, AtAHigherConfidenceIsWiderOrAbsent) {
  std::vector<double> samples(20);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i] = 1 + static_cast<double>((i * 8) % 21);  // 1 to 20 in some order
  }
  // Sign test at 99%, n = 20: ranks 4 and 17.
  const auto wide = statistics::estimate(samples, 0.99);
  ASSERT_TRUE(wide && wide->lower && wide->upper);
  std::ranges::sort(samples);
  EXPECT_EQ(*wide->lower, samples[3]);
  EXPECT_EQ(*wide->upper, samples[16]);
  // All of n samples enclose the median with 1 - 2^(1-n): 99.2% of 8, 98.4% of 7.
  const std::vector<double> eight{1, 5, 2, 7, 3, 8, 4, 6};
  EXPECT_TRUE(statistics::estimate(eight, 0.99)->lower);
  EXPECT_FALSE(statistics::estimate(std::span{eight}.first(7), 0.99)->lower);
}

TEST(OutOfTime, SaysHowFarItCame) {
  results::PointData point;
  point.stopped_because = "precision";
  const statistics::Estimate estimate{.median = 10, .lower = 9.8, .upper = 10.2};
  EXPECT_EQ(out_of_time(point, estimate), "");
  point.stopped_because = "max-time";
  EXPECT_EQ(out_of_time(point, estimate), "out of time at ±2.0%");
  EXPECT_EQ(out_of_time(point, statistics::Estimate{.median = 10}),
            "time ran out before an interval was known");
}

TEST(OverLaunches, OneSaysNothingOfTheNextAndTwoHaveASpread) {
  const auto one = statistics::over_launches(std::vector{2.0});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->median, 2.0);
  EXPECT_EQ(one->samples, 1U);
  EXPECT_FALSE(one->lower || one->upper);
  EXPECT_FALSE(statistics::launch_spread(*one));
  EXPECT_FALSE(statistics::over_launches({}));
  EXPECT_FALSE(statistics::over_launches(std::vector{1.0, 0.0})) << "which is no time";
  EXPECT_FALSE(
      statistics::over_launches(std::vector{1.0, std::numeric_limits<double>::infinity()}));
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

// Statistics of step times that were measured, see tests/golden/README.md. What is expected was
// computed with numpy, or can be seen in the series.

/// Milliseconds; the first line says what they are.
std::vector<double> recorded(const std::string& name) {
  std::ifstream file{std::string{ISOSCALE_GOLDEN} + "/step_times/" + name + ".txt"};
  std::string what;
  std::getline(file, what);
  std::vector<double> times;
  for (double time = 0; file >> time;) times.push_back(time);
  EXPECT_EQ(times.size(), 200U) << name;
  return times;
}

// A machine with more work than cores: what slows one step down slows the next down too.
TEST(RecordedSteps, ThatCorrelateAreTakenInBlocks) {
  const auto queued = recorded("queued");
  EXPECT_NEAR(*statistics::median(queued), 36.4620, 1e-3);
  EXPECT_NEAR(*statistics::autocorrelation(queued), 0.606784, 1e-5);
  const auto wide = statistics::estimate(queued);
  EXPECT_GE(wide->block, 10U);
  ASSERT_TRUE(wide->lower && wide->upper);
  EXPECT_GT(*statistics::relative_half_width(*wide), 0.1)
      << "200 of such steps do not know their median well";

  const auto two_ranks = recorded("two_ranks");
  EXPECT_NEAR(*statistics::median(two_ranks), 60.4435, 1e-3);
  EXPECT_NEAR(*statistics::autocorrelation(two_ranks), 0.351485, 1e-5);
  EXPECT_GT(statistics::estimate(two_ranks)->block, 1U);
  // Their trend is no more than such noise makes by chance.
  for (const char* name : {"queued", "two_ranks"}) {
    EXPECT_FALSE(statistics::sample_flags(recorded(name)).drift) << name;
    EXPECT_FALSE(statistics::sample_flags(recorded(name)).bimodal) << name;
  }
}

// Steps of 2.8 ms that an operating system lets run through, or holds up for a slice of 4 ms.
TEST(RecordedSteps, ThatAreHeldUpOrNotAreOfTwoKinds) {
  const auto times = recorded("time_slices");
  EXPECT_LT(*statistics::autocorrelation(times), -0.3) << "they take turns";
  EXPECT_EQ(statistics::estimate(times)->block, 1U);
  const statistics::SampleFlags flags = statistics::sample_flags(times);
  ASSERT_TRUE(flags.bimodal);
  EXPECT_NEAR(flags.bimodal->low, 2.8, 0.1);
  EXPECT_NEAR(flags.bimodal->high, 6.9, 0.1);
  EXPECT_NEAR(flags.bimodal->share_high, 0.61, 0.02);
  EXPECT_TRUE(flags.outliers);
  EXPECT_FALSE(flags.drift);
  EXPECT_EQ(statistics::last_change(times, 0.005), 0U);
}

}  // namespace
}  // namespace isoscale::analysis
