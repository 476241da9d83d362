// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/records/counted_steps.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "series.hpp"

namespace isoscale::analysis {
namespace {

TEST(NominalConfidence, OfOneLookIsPlain) {
  EXPECT_EQ(statistics::nominal_confidence(1, 1.5), 0.95);
  EXPECT_EQ(statistics::nominal_confidence(0, 1.5), 0.95);
  EXPECT_EQ(statistics::nominal_confidence(9, 1.0), 0.95) << "looks at the same samples";
}

// Two equal groups: the second look has twice the samples. Pocock's table: 0.0294.
TEST(NominalConfidence, OfTwoLooksIsThatOfPococksTable) {
  EXPECT_NEAR(statistics::nominal_confidence(2, 2.0), 1 - 0.0294, 5e-5);
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

TEST(ConfidenceOf, IsThatOfThePointsLooks) {
  results::PointData point;
  EXPECT_EQ(confidence_of(point), 0.95);
  point.looks = {.planned = 2, .made = 1, .growth = 2};
  EXPECT_NEAR(confidence_of(point), 1 - 0.0294, 5e-5);
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

}  // namespace
}  // namespace isoscale::analysis
