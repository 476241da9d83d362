// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis_test.hpp"
#include "calibration/calibration.hpp"

namespace isoscale::analysis {
namespace {

constexpr double gib = 1024 * mib;

std::vector<results::CurveSample> published() {
  return mapped(eight_h100, [](const auto& at) {
    return results::CurveSample{.bytes = at.first, .time = at.second * 1e-6};
  });
}

/// 8 B to 1 GiB by `factor`: latency + bytes / bandwidth, with normal relative noise.
std::vector<results::CurveSample> synthetic(double latency, double bandwidth, double noise,
                                            unsigned seed, double factor = 2) {
  std::mt19937 random{seed};
  std::normal_distribution<double> normal{1, noise > 0 ? noise : 1};
  std::vector<results::CurveSample> curve;
  for (double bytes = 8; bytes <= gib; bytes *= factor) {
    const double time = latency + bytes / bandwidth;
    curve.push_back({bytes, noise > 0 ? time * normal(random) : time});
  }
  return curve;
}

TEST(CalibrationCurve, RecoversLatencyAndBandwidthUnderNoise) {
  constexpr int seeds = 200;
  for (const auto& [latency, bandwidth] :
       {std::pair{1e-6, 5e9}, {15e-6, 274e9}, {200e-6, 25e9}, {20e-6, 0.12e9}}) {
    int latency_covered = 0, bandwidth_covered = 0;
    for (unsigned seed = 1; seed <= seeds; ++seed) {
      SCOPED_TRACE(testing::Message() << latency << " s, " << bandwidth << " B/s, seed " << seed);
      const auto curve = calibration::fit_curve(synthetic(latency, bandwidth, 0.01, seed));
      ASSERT_TRUE(curve.latency && curve.latency->lower);
      ASSERT_TRUE(curve.bandwidth && curve.bandwidth->lower);
      EXPECT_NEAR(curve.latency->value / latency, 1, 0.02);
      EXPECT_NEAR(curve.bandwidth->value / bandwidth, 1, 0.02);
      const auto covers = [](const results::Fitted& at, double truth) {
        return *at.lower <= truth && truth <= *at.upper ? 1 : 0;
      };
      latency_covered += covers(*curve.latency, latency);
      bandwidth_covered += covers(*curve.bandwidth, bandwidth);
    }
    EXPECT_GT(latency_covered, seeds * 85 / 100) << latency;
    EXPECT_GT(bandwidth_covered, seeds * 85 / 100) << bandwidth;
  }
}

TEST(CalibrationCurve, RecoversThemFromAFewSizesAndBesideOutliers) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    const auto curve =
        calibration::fit_curve(synthetic(2e-6, 5e9, 0.01, seed, 8));  // 8 B, 64 B, ... 1 GiB
    ASSERT_TRUE(curve.latency && curve.bandwidth) << seed;
    EXPECT_NEAR(curve.latency->value / 2e-6, 1, 0.03) << seed;
    EXPECT_NEAR(curve.bandwidth->value / 5e9, 1, 0.03) << seed;
  }
  auto samples = synthetic(15e-6, 100e9, 0.01, 3);
  samples[2].time *= 5;     // a plateau size
  samples[24].time *= 1.4;  // and a large one
  const auto curve = calibration::fit_curve(samples);
  EXPECT_NEAR(curve.latency->value / 15e-6, 1, 0.04);
  EXPECT_NEAR(curve.bandwidth->value / 100e9, 1, 0.04);
}

TEST(CalibrationCurve, NeverFallsAndGoesOnBeyondItsSizes) {
  const auto noisy = calibration::fit_curve(synthetic(15e-6, 274e9, 0.10, 7));
  double last = 0;
  for (double bytes = 1; bytes < 8 * gib; bytes *= 1.1) {
    const auto at = calibration::predict(noisy, bytes);
    ASSERT_TRUE(at) << bytes;
    EXPECT_GE(*at, last) << bytes;
    last = *at;
  }
  const auto curve = calibration::fit_curve(synthetic(10e-6, 100e9, 0, 1));
  EXPECT_NEAR(*calibration::predict(curve, 1), 10e-6, 1e-9);
  EXPECT_NEAR(*calibration::predict(curve, 4 * gib), 10e-6 + 4 * gib / 100e9, 1e-5);
}

/// Fits the curve without each interior size in turn: how often it lies in its stated interval.
int held_out_within(const std::vector<results::CurveSample>& sizes) {
  int within = 0;
  for (std::size_t at = 1; at + 1 < sizes.size(); ++at) {
    std::vector<results::CurveSample> rest = sizes;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(at));
    const auto curve = calibration::fit_curve(rest);
    const double ratio = *calibration::predict(curve, sizes[at].bytes) / sizes[at].time;
    within += std::max(ratio, 1 / ratio) <= 1 + *curve.error ? 1 : 0;
  }
  return within;
}

TEST(CalibrationCurve, HoldsSizesThatItHasNotSeenAsOftenAsItPromises) {
  EXPECT_EQ(held_out_within(published()), 21);
  int within = 0, all = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const auto sizes = synthetic(15e-6, 274e9, 0.01, seed);
    within += held_out_within(sizes);
    all += static_cast<int>(sizes.size()) - 2;
  }
  EXPECT_GE(within, all * 94 / 100);
}

TEST(CalibrationCurve, FollowsWhereOnePairOfLatencyAndBandwidthDoesNot) {
  // The pair that fits the ends of the published curve: 16.9 us and 274.3 GB/s.
  const auto curve = calibration::fit_curve(published());
  double worst_of_pair = 0, worst_of_curve = 0;
  for (const results::CurveSample& at : published()) {
    worst_of_pair = std::max(worst_of_pair, 1 - (16.9e-6 + at.bytes / 274.3e9) / at.time);
    const double off = std::abs(*calibration::predict(curve, at.bytes) / at.time - 1);
    worst_of_curve = std::max(worst_of_curve, off);
  }
  for (const auto& at : curve.samples) EXPECT_LT(std::abs(at.held_out.value_or(0)), 0.15);
  EXPECT_NEAR(worst_of_pair, 0.43, 0.01);
  EXPECT_LT(worst_of_curve, 1e-9);  // it rises all along: the curve goes through all of it
  EXPECT_NEAR(*curve.error, 0.145, 0.001);
  EXPECT_NEAR(curve.latency->value / 16.9e-6, 1, 0.05);
  EXPECT_NEAR(curve.bandwidth->value / 274.3e9, 1, 0.01);
}

TEST(CalibrationCurve, IsStraightInTimeOverSizeWhereThatIsClearlyBetter) {
  EXPECT_EQ(calibration::fit_curve(published()).form, "log");
  // Latency and bandwidth and nothing else, at sizes far apart: exact.
  const auto coarse = calibration::fit_curve(synthetic(10e-6, 5e9, 0, 1, 8));
  EXPECT_EQ(coarse.form, "linear");
  EXPECT_LT(coarse.error.value(), 1e-9);
  EXPECT_NEAR(*calibration::predict(coarse, 100e3), 10e-6 + 100e3 / 5e9, 1e-12);
  // A power law is straight in logarithms.
  std::vector<results::CurveSample> power;
  for (double bytes = 8; bytes <= gib; bytes *= 8) power.push_back({bytes, std::sqrt(bytes)});
  EXPECT_EQ(calibration::fit_curve(power).form, "log");
  EXPECT_NEAR(*calibration::predict(calibration::fit_curve(power), 1e6), 1e3, 1e-6);
}

TEST(CalibrationCurve, SaysWhatItsSamplesDoNotShow) {
  EXPECT_TRUE(calibration::fit_curve({}).samples.empty());
  EXPECT_FALSE(calibration::predict(calibration::fit_curve({}), 8));
  EXPECT_TRUE(calibration::fit_curve({{8, 0}, {8, -1}, {16, std::nan("")}}).samples.empty());

  const auto barrier = calibration::fit_curve({{0, 3e-6}});
  EXPECT_NEAR(barrier.latency->value, 3e-6, 1e-18);
  EXPECT_FALSE(barrier.bandwidth || barrier.error);
  EXPECT_NEAR(*calibration::predict(barrier, 0), 3e-6, 1e-18);
  EXPECT_FALSE(calibration::predict(barrier, 8));

  const auto two = calibration::fit_curve({{8, 1e-6}, {mib, 101e-6}});
  EXPECT_NEAR(two.latency->value, 1e-6, 1e-8);
  EXPECT_NEAR(two.bandwidth->value / (mib / 100e-6), 1, 1e-4);
  EXPECT_FALSE(two.error || two.latency->lower);

  std::vector<results::CurveSample> small_only, large_only;
  for (const results::CurveSample& at : synthetic(10e-6, 100e9, 0, 1)) {
    (at.bytes <= 64 * kib ? small_only : large_only).push_back(at);
  }
  EXPECT_TRUE(calibration::fit_curve(small_only).latency);
  EXPECT_FALSE(calibration::fit_curve(small_only).bandwidth);
  large_only.erase(large_only.begin(), large_only.begin() + 5);  // from 4 MiB on
  EXPECT_FALSE(calibration::fit_curve(large_only).latency);
  EXPECT_NEAR(calibration::fit_curve(large_only).bandwidth->value / 100e9, 1, 0.01);
}

}  // namespace
}  // namespace isoscale::analysis
