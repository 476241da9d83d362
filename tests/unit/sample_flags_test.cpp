// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "statistics/sample_flags.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "series.hpp"
#include "statistics/trend.hpp"

namespace isoscale::analysis {
namespace {

using samples::Autoregressive;
using samples::Draw;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Trend, OfASlopeWorkedOutByHand) {
  // 101 ... 110: S = 45, variance 10 * 9 * 25 / 18 = 125, z = 44 / sqrt(125).
  std::vector<double> samples(10);
  std::iota(samples.begin(), samples.end(), 101.0);
  const auto found = statistics::trend(samples);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->change, 9 / 105.5, 1e-12);
  EXPECT_NEAR(found->probability, std::erfc(44 / std::sqrt(250.0)), 1e-12);
  EXPECT_EQ(statistics::trend(std::vector<double>(20, 1.0))->probability, 1.0);
  EXPECT_FALSE(statistics::trend(std::vector<double>(7, 1.0)));
  EXPECT_FALSE(statistics::trend(std::vector<double>(20, -1.0))) << "relative to what?";
  std::vector<double> unknown(20, 1.0);
  unknown[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(statistics::trend(unknown));
}

TEST(Trend, IsFoundUnderCorrelatedNoise) {
  std::vector<double> samples = Autoregressive{1, 0.5, 0.01}.take(400);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] *= 1 + 0.05 * double(i) / 400;
  const auto found = statistics::trend(samples);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->change, 0.05, 0.01);
  EXPECT_LT(found->probability, 1e-6);
}

TEST(Dip, IsThatOfSmallSamples) {
  EXPECT_DOUBLE_EQ(*statistics::dip(std::array{1.0, 1.0, 2.0, 2.0}), 0.25)
      << "the largest there is";
  EXPECT_DOUBLE_EQ(*statistics::dip(std::array{0.0, 1.0, 3.0, 6.0}), 0.125) << "1 / 2n: one mode";
  EXPECT_DOUBLE_EQ(*statistics::dip(std::array{6.0, 5.0, 3.0, 0.0}), 0.125) << "and mirrored";
  std::vector<double> even(10);
  std::iota(even.begin(), even.end(), 0.0);
  EXPECT_DOUBLE_EQ(*statistics::dip(even), 0.05);
  EXPECT_EQ(*statistics::dip(std::vector<double>(9, 2.0)), 0.0);
  EXPECT_FALSE(statistics::dip(std::array{1.0, 2.0, 3.0}));
  for (const std::size_t n : {20U, 100U, 400U}) {
    Draw draw{n};
    int above = 0;
    for (int series = 0; series < 1000; ++series) {
      std::vector<double> samples(n);
      std::ranges::generate(samples, [&] { return draw.uniform(); });
      above += *statistics::dip(samples) * std::sqrt(static_cast<double>(n)) > 0.65 ? 1 : 0;
    }
    EXPECT_LE(above, 10) << n;
  }
}

TEST(TwoGroups, OfTwoHeaps) {
  const auto groups = statistics::two_groups(std::array{1.0, 5.0, 1.2, 5.2, 0.8, 4.8, 5.0, 5.0});
  ASSERT_TRUE(groups);
  EXPECT_EQ(groups->low, 1.0);
  EXPECT_EQ(groups->high, 5.0);
  EXPECT_EQ(groups->share_high, 0.625);
  // Deviations 0.2, 0, 0.2 and 0, 0.2, 0.2, 0, 0.
  EXPECT_NEAR(groups->spread_low, 1.4826 * 0.2, 1e-12);
  EXPECT_NEAR(groups->spread_high, 0, 1e-12);
  EXPECT_NEAR(groups->separation, std::sqrt(2.0) * 4 / (1.4826 * 0.2), 1e-9);
  EXPECT_FALSE(statistics::two_groups(std::vector<double>(9, 2.0)));
}

TEST(SampleFlags, AreRaisedForWhatIsThere) {
  Draw draw{4};
  std::vector<double> samples(200);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i] = (i * 7 % 20 < 5 ? 1.05 : 1.0) * (1 + 0.002 * draw.normal());
  }
  samples[50] = 2.1;
  const statistics::SampleFlags flags = statistics::sample_flags(samples);
  ASSERT_TRUE(flags.bimodal);
  EXPECT_NEAR(flags.bimodal->high / flags.bimodal->low, 1.05, 0.002);
  ASSERT_TRUE(flags.outliers);
  EXPECT_NEAR(flags.outliers->furthest, 2.1, 0.01);
  EXPECT_FALSE(flags.drift);
}

TEST(SampleFlags, SpeakInSentences) {
  std::vector<double> drifting = Autoregressive{2, 0, 0.001}.take(100);
  for (std::size_t i = 0; i < 100; ++i) drifting[i] *= 1 + 0.1 * double(i) / 99;
  EXPECT_THAT(statistics::sample_flags(drifting).sentences,
              testing::Contains(HasSubstr("slower while they were measured")));
  std::vector<double> spiked = Autoregressive{2, 0, 0.01}.take(100);
  spiked[10] = 3;
  EXPECT_THAT(statistics::sample_flags(spiked).sentences,
              ElementsAre(HasSubstr("1 of 100 steps lies far")));
  EXPECT_TRUE(statistics::sample_flags({}).sentences.empty());
  EXPECT_TRUE(statistics::sample_flags(std::vector<double>(200, 1.0)).sentences.empty());
  EXPECT_TRUE(statistics::sample_flags(std::array{1.0, 2.0, 9.0}).sentences.empty());
}

TEST(SampleFlags, ASlopeOfLessThanOnePercentIsNoDrift) {
  std::vector<double> samples = Autoregressive{2, 0, 0.0001}.take(100);
  for (std::size_t i = 0; i < 100; ++i) samples[i] *= 1 + 0.008 * double(i) / 99;
  const statistics::SampleFlags flags = statistics::sample_flags(samples);
  EXPECT_FALSE(flags.drift);
  ASSERT_TRUE(flags.trend);
  EXPECT_NEAR(flags.trend->change, 0.008, 0.001);
}

struct Distribution {
  std::string name;
  std::function<double(Draw&)> draw;
};

TEST(SampleFlags, DriftAndTwoModesAreRarelySeenWhereThereAreNone) {
  const std::array<Distribution, 3> all{{
      {"normal", [](Draw& draw) { return 1 + 0.05 * draw.normal(); }},
      {"uniform", [](Draw& draw) { return 1 + 0.2 * draw.uniform(); }},
      {"lognormal", [](Draw& draw) { return std::exp(0.2 * draw.normal()); }},
  }};
  for (const Distribution& distribution : all) {
    Draw draw{11};
    int drifts = 0;
    int bimodals = 0;
    for (int series = 0; series < 1000; ++series) {
      std::vector<double> samples(64);
      std::ranges::generate(samples, [&] { return distribution.draw(draw); });
      const statistics::SampleFlags flags = statistics::sample_flags(samples);
      drifts += flags.drift ? 1 : 0;
      bimodals += flags.bimodal ? 1 : 0;
    }
    EXPECT_LE(bimodals, 10) << distribution.name;
    EXPECT_LE(drifts, 10) << distribution.name;
  }
}

TEST(SampleFlags, DriftIsRarelySeenInCorrelatedSamples) {
  int drifts = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    drifts += statistics::sample_flags(Autoregressive{seed, 0.5, 0.05}.take(200)).drift ? 1 : 0;
  }
  EXPECT_LE(drifts, 9);
}

std::vector<double> levels(std::size_t first, double high, std::size_t then, double low) {
  std::vector<double> samples(first, high);
  samples.insert(samples.end(), then, low);
  return samples;
}

TEST(ChangePoint, OfTwoLevelsWorkedOutByHandAndOfNone) {
  // Mid-ranks 12.5 and 4.5; K = |2 * 8 * 12.5 - 8 * 17| = 64; 2 exp(-6 * 64^2 / (16^3 + 16^2)).
  const auto change = statistics::change_point(levels(8, 2, 8, 1));
  ASSERT_TRUE(change);
  EXPECT_EQ(change->first, 8U);
  EXPECT_NEAR(change->probability, 2 * std::exp(-24576.0 / 4352.0), 1e-12);
  EXPECT_EQ(statistics::change_point(std::vector<double>(30, 1.0))->probability, 1.0);
  EXPECT_FALSE(statistics::change_point(std::array{1.0}));
  EXPECT_FALSE(statistics::change_point({}));
  EXPECT_FALSE(statistics::change_point(std::array{1.0, std::numeric_limits<double>::quiet_NaN()}));
}

TEST(LastChange, IsFoundBehindEarlierOnes) {
  std::vector<double> samples = levels(20, 3, 20, 2);
  samples.insert(samples.end(), 40, 1.0);
  EXPECT_EQ(statistics::last_change(samples, 0.01), 40U);
  // It may be too small to count, and cannot be seen in fifteen samples.
  EXPECT_EQ(statistics::last_change(levels(30, 1.004, 30, 1), 0.005), 0U);
  EXPECT_EQ(statistics::last_change(levels(30, 1.006, 30, 1), 0.005), 30U);
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
