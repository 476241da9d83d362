// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/scaling_laws.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "series.hpp"

namespace isoscale::analysis {
namespace {

using Law = std::function<double(double p)>;
using Points = std::vector<ScalingPoint>;

const std::vector<double> up_to_32{1, 2, 4, 8, 16, 32};

Law amdahls(double f) {
  return [f](double p) { return 1 / (f + (1 - f) / p); };
}
Law gustafsons(double f) {
  return [f](double p) { return p - f * (p - 1); };
}
Law gunthers(double a, double b) {
  return [a, b](double p) { return p / (1 + a * (p - 1) + b * p * (p - 1)); };
}

Points points_of(const Law& law, std::span<const double> counts) {
  Points points;
  for (const double p : counts) points.push_back({.p = p, .speedup = law(p)});
  return points;
}

/// Every throughput is 1% off, the baseline's too.
Points noisy(const Law& law, std::span<const double> counts, std::uint64_t seed) {
  samples::Draw draw{seed};
  Points points = points_of(law, counts);
  for (ScalingPoint& point : points) point.speedup *= 1 + 0.01 * draw.normal();
  const double baseline = points.front().speedup;
  for (ScalingPoint& point : points) point.speedup /= baseline;
  return points;
}

/// Of 1,000 noisy curves, how many gave an interval that holds `truth`.
int times_held(const Law& law, std::span<const double> counts, double truth,
               const std::function<statistics::Located(const Points&)>& fitted) {
  int held = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const statistics::Located at = fitted(noisy(law, counts, seed));
    held += at.lower && at.upper && *at.lower <= truth && truth <= *at.upper ? 1 : 0;
  }
  return held;
}

TEST(KarpFlatt, IsTheSerialFractionOfOnePoint) {
  // 4 ranks, speed-up 2.5: (0.4 - 0.25) / 0.75 = 0.2.
  const auto fraction = karp_flatt({.p = 4, .speedup = 2.5, .lower = 2, .upper = 3.2});
  ASSERT_TRUE(fraction);
  EXPECT_NEAR(fraction->value, 0.2, 1e-15);
  // (1/3.2 - 1/4) / 0.75 and (1/2 - 1/4) / 0.75.
  ASSERT_TRUE(fraction->lower && fraction->upper);
  EXPECT_NEAR(*fraction->lower, 1.0 / 12, 1e-15);
  EXPECT_NEAR(*fraction->upper, 1.0 / 3, 1e-15);
}

TEST(KarpFlatt, IsZeroWhenIdealAndNegativeBeyond) {
  EXPECT_EQ(karp_flatt({.p = 8, .speedup = 8})->value, 0);
  EXPECT_LT(karp_flatt({.p = 8, .speedup = 8.5})->value, 0);
}

TEST(KarpFlatt, TakesAnyBaseline) {
  // From 4 ranks to 6: p = 1.5.
  EXPECT_NEAR(karp_flatt({.p = 1.5, .speedup = 1 / (0.1 + 0.9 / 1.5)})->value, 0.1, 1e-15);
}

TEST(KarpFlatt, HasNoIntervalWithoutThatOfTheSpeedUp) {
  const auto fraction = karp_flatt({.p = 4, .speedup = 2.5, .upper = 3});
  EXPECT_FALSE(fraction->lower);
  EXPECT_FALSE(fraction->upper);
}

TEST(KarpFlatt, IsAbsentAtTheBaselineAndBelow) {
  EXPECT_FALSE(karp_flatt({.p = 1, .speedup = 1}));
  EXPECT_FALSE(karp_flatt({.p = 0.5, .speedup = 0.6}));
  EXPECT_FALSE(karp_flatt({.p = 4, .speedup = 0}));
}

TEST(Amdahl, FindsTheFractionThatPointsWereMadeFrom) {
  for (const double f : {0.0, 0.001, 0.05, 0.5, 1.0}) {
    const auto found = amdahl(points_of(amdahls(f), up_to_32));
    ASSERT_TRUE(found) << f;
    EXPECT_NEAR(found->value, f, 1e-12);
    EXPECT_NEAR(*found->lower, f, 1e-6);
    EXPECT_NEAR(*found->upper, f, 1e-6);
  }
}

TEST(Amdahl, TakesAnyBaselineAndLeavesOutWhatIsBelowIt) {
  // 4 ranks are the baseline; 1 and 2 ranks follow another law.
  Points points = points_of(amdahls(0.1), std::vector{1.0, 1.5, 2.0, 4.0});
  points.insert(points.begin(), {{.p = 0.25, .speedup = 0.4}, {.p = 0.5, .speedup = 0.9}});
  const auto found = amdahl(points);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->value, 0.1, 1e-12);
}

TEST(Amdahl, NeedsThreePointsBeyondTheBaseline) {
  EXPECT_FALSE(amdahl({}));
  EXPECT_FALSE(amdahl(points_of(amdahls(0.1), std::vector{1.0, 2.0, 4.0})));
  EXPECT_TRUE(amdahl(points_of(amdahls(0.1), std::vector{1.0, 2.0, 4.0, 8.0})));
  // Below the baseline is not beyond it, and what has no throughput is no point.
  EXPECT_FALSE(amdahl(points_of(amdahls(0.1), std::vector{0.5, 1.0, 2.0, 4.0})));
  Points without = points_of(amdahls(0.1), std::vector{1.0, 2.0, 4.0, 8.0});
  without.back().speedup = 0;
  EXPECT_FALSE(amdahl(without));
}

TEST(Amdahl, IsAbsentWhereNoLineCanBeDrawn) {
  EXPECT_FALSE(amdahl(points_of(amdahls(0.1), std::vector{2.0, 2.0, 2.0, 2.0})));
}

TEST(Amdahl, IntervalsHoldTheTruth) {
  for (const std::size_t n : {4U, 5U, 6U}) {
    for (const double f : {0.01, 0.1}) {
      const int held = times_held(amdahls(f), std::span{up_to_32}.first(n), f,
                                  [](const Points& points) { return amdahl(points).value(); });
      EXPECT_GE(held, 920) << "f " << f << ", " << n << " points";
      EXPECT_LE(held, 980) << "f " << f << ", " << n << " points";
    }
  }
}

TEST(Gustafson, FindsTheFractionThatPointsWereMadeFrom) {
  // By hand: 8 ranks do 7.3 times the work in the time of one: f = 0.7 / 7 = 0.1.
  EXPECT_NEAR(gustafsons(0.1)(8), 7.3, 1e-14);
  for (const double f : {0.0, 0.001, 0.1, 0.5}) {
    const auto found = gustafson(points_of(gustafsons(f), up_to_32));
    ASSERT_TRUE(found) << f;
    EXPECT_NEAR(found->value, f, 1e-12);
  }
  const auto from_four =
      gustafson(points_of(gustafsons(0.1), std::vector{0.5, 1.0, 1.5, 2.0, 4.0}));
  ASSERT_TRUE(from_four);
  EXPECT_NEAR(from_four->value, 0.1, 1e-12);
}

TEST(Gustafson, NeedsThreePointsBeyondTheBaseline) {
  EXPECT_FALSE(gustafson(points_of(gustafsons(0.1), std::vector{1.0, 2.0, 4.0})));
  EXPECT_TRUE(gustafson(points_of(gustafsons(0.1), std::vector{1.0, 2.0, 4.0, 8.0})));
}

TEST(Gustafson, IntervalsHoldTheTruth) {
  for (const std::size_t n : {4U, 5U, 6U}) {
    for (const double f : {0.01, 0.1}) {
      const int held = times_held(gustafsons(f), std::span{up_to_32}.first(n), f,
                                  [](const Points& points) { return gustafson(points).value(); });
      EXPECT_GE(held, 920) << "f " << f << ", " << n << " points";
      EXPECT_LE(held, 980) << "f " << f << ", " << n << " points";
    }
  }
}

TEST(UniversalLaw, FindsTheCoefficientsThatPointsWereMadeFrom) {
  // By hand: a = 0.1, b = 0.01, 4 ranks: 4 / (1 + 0.3 + 0.12).
  EXPECT_NEAR(gunthers(0.1, 0.01)(4), 4 / 1.42, 1e-14);
  const auto found = usl(points_of(gunthers(0.1, 0.01), up_to_32));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->contention.value, 0.1, 1e-12);
  EXPECT_NEAR(found->coherency.value, 0.01, 1e-12);
  ASSERT_TRUE(found->peak);
  EXPECT_NEAR(*found->peak, 9.486832980505138, 1e-9);  // sqrt(0.9 / 0.01)
}

TEST(UniversalLaw, PromisesNoPeakWhereCoherencyMayBeZero) {
  const auto amdahl_only = usl(noisy(gunthers(0.05, 0), up_to_32, 1));
  ASSERT_TRUE(amdahl_only);
  EXPECT_LE(*amdahl_only->coherency.lower, 0);
  EXPECT_FALSE(amdahl_only->peak);
  const auto with_peak = usl(noisy(gunthers(0.05, 0.01), up_to_32, 1));
  ASSERT_TRUE(with_peak && with_peak->peak);
  EXPECT_GT(*with_peak->coherency.lower, 0);
  EXPECT_NEAR(*with_peak->peak, 9.75, 2);  // sqrt(0.95 / 0.01)
}

TEST(UniversalLaw, NeedsSixPointsWithTheBaseline) {
  EXPECT_FALSE(usl(points_of(gunthers(0.1, 0.01), std::span{up_to_32}.first(5))));
  EXPECT_FALSE(usl(points_of(gunthers(0.1, 0.01), std::vector{0.5, 1.0, 2.0, 4.0, 8.0, 16.0})));
  // Two rank counts cannot tell two coefficients.
  EXPECT_FALSE(usl(points_of(gunthers(0.1, 0.01), std::vector{1.0, 2.0, 2.0, 2.0, 2.0, 2.0})));
}

TEST(UniversalLaw, IntervalsHoldTheTruth) {
  const std::vector<double> up_to_128{1, 2, 4, 8, 16, 32, 64, 128};
  for (const std::size_t n : {6U, 8U}) {
    const auto counts = std::span{up_to_128}.first(n);
    const Law law = gunthers(0.05, 0.001);
    EXPECT_GE(times_held(law, counts, 0.05,
                         [](const Points& points) { return usl(points).value().contention; }),
              920);
    EXPECT_GE(times_held(law, counts, 0.001,
                         [](const Points& points) { return usl(points).value().coherency; }),
              920);
  }
}

}  // namespace
}  // namespace isoscale::analysis
