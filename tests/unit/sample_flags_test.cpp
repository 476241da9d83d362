// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "statistics/sample_flags.hpp"
#include "analysis/report.hpp"
#include "analysis_test.hpp"
#include "results/records/counted_steps.hpp"

namespace isoscale::analysis {
namespace {

using results::StepBlock;
using Kind = StepBlock::Kind;

/// Noise, in which each sample is as much longer than the first as a part of `slope`.
std::vector<double> drifting(Autoregressive noise, std::size_t count, double slope) {
  std::vector<double> samples = noise.take(count);
  for (std::size_t i = 0; i < count; ++i) {
    samples[i] *= 1 + slope * static_cast<double>(i) / static_cast<double>(count);
  }
  return samples;
}

TEST(Trend, OfASlopeWorkedOutByHandAndUnderCorrelatedNoise) {
  // 101 ... 110: S = 45, variance 10 * 9 * 25 / 18 = 125, z = 44 / sqrt(125).
  std::vector<double> samples(10);
  std::iota(samples.begin(), samples.end(), 101.0);
  const auto found = statistics::trend(samples);
  EXPECT_NEAR(found.value().change, 9 / 105.5, 1e-12);
  EXPECT_NEAR(found->probability, std::erfc(44 / std::sqrt(250.0)), 1e-12);
  EXPECT_EQ(statistics::trend(std::vector<double>(20, 1.0))->probability, 1.0);
  EXPECT_FALSE(statistics::trend(std::vector<double>(7, 1.0)));
  EXPECT_FALSE(statistics::trend(std::vector<double>(20, -1.0))) << "relative to what?";
  std::vector<double> unknown(20, 1.0);
  unknown[3] = nan;
  EXPECT_FALSE(statistics::trend(unknown));
  const auto correlated = statistics::trend(drifting({1, 0.5, 0.01}, 400, 0.05));
  EXPECT_NEAR(correlated.value().change, 0.05, 0.01);
  EXPECT_LT(correlated->probability, 1e-6);
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
  EXPECT_EQ(groups.value().low, 1.0);
  EXPECT_EQ(groups->high, 5.0);
  EXPECT_EQ(groups->share_high, 0.625);
  // Deviations 0.2, 0, 0.2 and 0, 0.2, 0.2, 0, 0.
  EXPECT_NEAR(groups->spread_low, 1.4826 * 0.2, 1e-12);
  EXPECT_NEAR(groups->spread_high, 0, 1e-12);
  EXPECT_NEAR(groups->separation, std::sqrt(2.0) * 4 / (1.4826 * 0.2), 1e-9);
  EXPECT_FALSE(statistics::two_groups(std::vector<double>(9, 2.0)));
}

TEST(SampleFlags, HaveASentenceEach) {
  const auto drift = statistics::sample_flags(drifting({2, 0, 0.001}, 100, 0.1));
  EXPECT_TRUE(drift.drift);
  EXPECT_THAT(drift.sentences, Contains(HasSubstr("slower")));
  std::vector<double> spiked = Autoregressive{2, 0, 0.01}.take(100);
  spiked[10] = 3;
  const auto outlier = statistics::sample_flags(spiked);
  EXPECT_NEAR(outlier.outliers.value().furthest, 3, 0.05);
  EXPECT_THAT(outlier.sentences, ElementsAre(HasSubstr("1 of 100")));
  for (const auto& nothing :
       {std::vector<double>{}, std::vector<double>(200, 1.0), std::vector<double>{1, 2, 9}}) {
    EXPECT_THAT(statistics::sample_flags(nothing).sentences, ElementsAre());
  }
  const auto small = statistics::sample_flags(drifting({2, 0, 0.0001}, 100, 0.008));
  EXPECT_FALSE(small.drift) << "a slope of less than one percent is none";
  ASSERT_TRUE(small.trend);
  EXPECT_NEAR(small.trend->change, 0.008, 0.001);
}

TEST(SampleFlags, DriftAndTwoModesAreRarelySeenWhereThereAreNone) {
  using Distribution = double (*)(Draw&);
  for (const Distribution distribution :
       {Distribution{[](Draw& draw) { return 1 + 0.05 * draw.normal(); }},
        Distribution{[](Draw& draw) { return 1 + 0.2 * draw.uniform(); }},
        Distribution{[](Draw& draw) { return std::exp(0.2 * draw.normal()); }}}) {
    Draw draw{11};
    int drifts = 0, bimodals = 0;
    for (int series = 0; series < 1000; ++series) {
      std::vector<double> samples(64);
      std::ranges::generate(samples, [&] { return distribution(draw); });
      const statistics::SampleFlags flags = statistics::sample_flags(samples);
      drifts += flags.drift ? 1 : 0;
      bimodals += flags.bimodal ? 1 : 0;
    }
    EXPECT_LE(bimodals, 10);
    EXPECT_LE(drifts, 10);
  }
  int drifts = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    drifts += statistics::sample_flags(Autoregressive{seed, 0.5, 0.05}.take(200)).drift ? 1 : 0;
  }
  EXPECT_LE(drifts, 9) << "of correlated samples";
}

std::vector<double> levels(std::size_t first, double high, std::size_t then, double low) {
  std::vector<double> samples(first, high);
  samples.insert(samples.end(), then, low);
  return samples;
}

TEST(ChangePoint, OfTwoLevelsWorkedOutByHandAndOfNone) {
  // Mid-ranks 12.5 and 4.5; K = |2 * 8 * 12.5 - 8 * 17| = 64; 2 exp(-6 * 64^2 / (16^3 + 16^2)).
  const auto change = statistics::change_point(levels(8, 2, 8, 1));
  EXPECT_EQ(change.value().first, 8U);
  EXPECT_NEAR(change->probability, 2 * std::exp(-24576.0 / 4352.0), 1e-12);
  EXPECT_EQ(statistics::change_point(std::vector<double>(30, 1.0))->probability, 1.0);
  EXPECT_FALSE(statistics::change_point(std::array{1.0}));
  EXPECT_FALSE(statistics::change_point({}));
  EXPECT_FALSE(statistics::change_point(std::array{1.0, nan}));
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

TEST(LastChange, OfAWarmUpUnderNoiseIsFoundWithinAFewStepsAndRarelyWhereThereIsNone) {
  int seen = 0, found = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const std::vector<double> noise = Autoregressive{seed, 0, 0.05}.take(60);
    seen += statistics::last_change(noise, 0.005) > 0 ? 1 : 0;
    if (seed >= 100) continue;
    std::vector<double> times = Autoregressive{seed, 0, 0.01}.take(60);
    for (std::size_t i = 0; i < 20; ++i) times[i] *= 1.1;
    const std::size_t change = statistics::last_change(times, 0.005);
    EXPECT_GE(change, 20U) << seed;
    found += change <= 26 ? 1 : 0;
  }
  EXPECT_LE(seen, 15);  // 1% of 1,000, and the error of counting
  EXPECT_GE(found, 97) << "another change is seen by chance in 1% at most";
}

TEST(StepBlocks, BeginWithADroppedStepAndEndWithTheirKind) {
  results::PointData point;
  point.warm_up_steps = 1;
  const auto add = [&](std::vector<double> of_rank, int traced, int dropped) {
    point.step_times.push_back(std::move(of_rank));
    point.traced.push_back(static_cast<std::uint8_t>(traced));
    point.dropped.push_back(static_cast<std::uint8_t>(dropped));
  };
  add({9, 9}, 0, 0);  // warm-up
  add({8, 8}, 0, 1);
  add({1, 2}, 0, 0);
  add({3, 1}, 0, 0);
  add({8, 8}, 1, 1);
  add({4, 1}, 1, 0);
  add({8, 8}, 1, 1);  // a block that follows one of its kind
  add({5, nan}, 1, 0);
  add({5, 6}, 1, 0);
  add({8, 8}, 0, 1);  // nothing of it counts
  const auto is = [](Kind kind, std::vector<double> times) {
    return AllOf(Field(&StepBlock::kind, kind), Field(&StepBlock::times, times));
  };
  EXPECT_THAT(step_blocks(point), ElementsAre(is(Kind::untraced, {2, 3}), is(Kind::traced, {4}),
                                              is(Kind::traced, {6})));
}

/// Pairs whose order is swapped, traced steps longer by `overhead`, on a machine that drifts.
std::vector<StepBlock> pairs(std::size_t count, double overhead, double drift_per_block) {
  std::vector<StepBlock> blocks;
  for (std::size_t i = 0; i < 2 * count; ++i) {
    const bool traced = (i % 4 == 1) || (i % 4 == 2);
    const double time =
        (1 + drift_per_block * static_cast<double>(i)) * (traced ? 1 + overhead : 1);
    blocks.push_back({.kind = traced ? Kind::traced : Kind::untraced, .times = {time, time, time}});
  }
  return blocks;
}

TEST(Overhead, IsTheCentreOfThePairs) {
  // A subset is used where there are many pairs; drift does not move what swapped pairs show.
  for (const auto& [count, drift, tolerance] :
       {std::tuple{6U, 0.0, 1e-12}, {5000U, 0.0, 1e-12}, {8U, 0.01, 0.002}}) {
    const auto found = instrumentation_overhead(pairs(count, 0.02, drift));
    ASSERT_TRUE(found && found->lower && found->upper);
    EXPECT_NEAR(found->value, 0.02, tolerance);
    EXPECT_LE(*found->lower, 0.02 + 1e-12);
    EXPECT_GE(*found->upper, 0.02 - 1e-12);
    if (drift > 0) continue;
    EXPECT_NEAR(*found->lower, 0.02, tolerance);
    EXPECT_NEAR(*found->upper, 0.02, tolerance);
  }
  const auto few = instrumentation_overhead(pairs(5, 0.02, 0));
  EXPECT_FALSE(few.value().lower);
  EXPECT_FALSE(instrumentation_overhead({}));
  const StepBlock alone{.kind = Kind::untraced, .times = {1, 1}};
  EXPECT_FALSE(instrumentation_overhead(std::vector{alone, alone}));
}

TEST(OverheadWarning, IsGivenAboveOnePercentWithItsInterval) {
  using statistics::Located;
  EXPECT_EQ(overhead_warning(std::nullopt), "");
  EXPECT_EQ(overhead_warning(Located{.value = 0.02, .lower = 0.005, .upper = 0.03}), "");
  EXPECT_EQ(overhead_warning(Located{.value = 0.009}), "");
  EXPECT_THAT(overhead_warning(Located{.value = 0.02, .lower = 0.012, .upper = 0.03}),
              HasSubstr("2.0% longer (1.2% to 3.0%)"));
  EXPECT_THAT(overhead_warning(Located{.value = 0.02}), HasSubstr("too few"));
}

}  // namespace
}  // namespace isoscale::analysis
