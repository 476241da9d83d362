// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/scaling_laws.hpp"
#include "analysis_test.hpp"

namespace isoscale::analysis {
namespace {

using Law = std::function<double(double p)>;
using Points = std::vector<efficiency::ScalingPoint>;

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
  for (efficiency::ScalingPoint& point : points) point.speedup *= 1 + 0.01 * draw.normal();
  const double baseline = points.front().speedup;
  for (efficiency::ScalingPoint& point : points) point.speedup /= baseline;
  return points;
}

/// Returns how many of 1,000 noisy curves gave an interval that holds `truth`.
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
  const auto fraction = efficiency::karp_flatt({.p = 4, .speedup = 2.5, .lower = 2, .upper = 3.2});
  EXPECT_NEAR(fraction.value().value, 0.2, 1e-15);
  EXPECT_NEAR(fraction->lower.value(), 1.0 / 12, 1e-15);  // (1/3.2 - 1/4) / 0.75
  EXPECT_NEAR(fraction->upper.value(), 1.0 / 3, 1e-15);   // (1/2 - 1/4) / 0.75
  EXPECT_EQ(efficiency::karp_flatt({.p = 8, .speedup = 8})->value, 0) << "ideal";
  EXPECT_LT(efficiency::karp_flatt({.p = 8, .speedup = 8.5})->value, 0) << "beyond";
  // Any baseline: from 4 ranks to 6, p = 1.5.
  EXPECT_NEAR(efficiency::karp_flatt({.p = 1.5, .speedup = 1 / (0.1 + 0.9 / 1.5)})->value, 0.1,
              1e-15);
  const auto half_open = efficiency::karp_flatt({.p = 4, .speedup = 2.5, .upper = 3});
  EXPECT_FALSE(half_open->lower || half_open->upper);
  EXPECT_FALSE(efficiency::karp_flatt({.p = 1, .speedup = 1})) << "the baseline";
  EXPECT_FALSE(efficiency::karp_flatt({.p = 0.5, .speedup = 0.6})) << "below it";
  EXPECT_FALSE(efficiency::karp_flatt({.p = 4, .speedup = 0}));
}

/// A law of one serial fraction and how it is fitted.
struct OneFraction {
  const char* name;
  Law (*law)(double f);
  std::optional<statistics::Located> (*fitted)(const Points& points);
};
const std::vector<OneFraction> fractions{
    {"Amdahl", amdahls, [](const Points& points) { return efficiency::amdahl(points); }},
    {"Gustafson", gustafsons, [](const Points& points) { return efficiency::gustafson(points); }}};

TEST(SerialFraction, IsTheOneThatPointsWereMadeFrom) {
  // By hand: 8 ranks do 7.3 times the work in the time of one: f = 0.7 / 7 = 0.1.
  EXPECT_NEAR(gustafsons(0.1)(8), 7.3, 1e-14);
  for (const OneFraction& at : fractions) {
    SCOPED_TRACE(at.name);
    for (const double f : {0.0, 0.001, 0.05, 0.1, 0.5, 1.0}) {
      const auto found = at.fitted(points_of(at.law(f), up_to_32));
      EXPECT_NEAR(found.value().value, f, 1e-12);
      EXPECT_NEAR(*found->lower, f, 1e-6);
      EXPECT_NEAR(*found->upper, f, 1e-6);
    }
    // 4 ranks are the baseline; 1 and 2 ranks follow another law.
    Points points = points_of(at.law(0.1), std::vector{1.0, 1.5, 2.0, 4.0});
    points.insert(points.begin(), {{.p = 0.25, .speedup = 0.4}, {.p = 0.5, .speedup = 0.9}});
    const auto found = at.fitted(points);
    EXPECT_NEAR(found.value().value, 0.1, 1e-12);
  }
}

TEST(SerialFraction, NeedsThreePointsBeyondTheBaseline) {
  for (const OneFraction& at : fractions) {
    SCOPED_TRACE(at.name);
    const Law law = at.law(0.1);
    EXPECT_FALSE(at.fitted({}));
    EXPECT_FALSE(at.fitted(points_of(law, std::vector{1.0, 2.0, 4.0})));
    Points points = points_of(law, std::vector{1.0, 2.0, 4.0, 8.0});
    EXPECT_TRUE(at.fitted(points));
    // Below the baseline is not beyond it, and what has no throughput is no point.
    EXPECT_FALSE(at.fitted(points_of(law, std::vector{0.5, 1.0, 2.0, 4.0})));
    points.back().speedup = 0;
    EXPECT_FALSE(at.fitted(points));
  }
  // Here no line can be drawn.
  EXPECT_FALSE(efficiency::amdahl(points_of(amdahls(0.1), std::vector{2.0, 2.0, 2.0, 2.0})));
}

TEST(SerialFraction, HasIntervalsThatHoldTheTruth) {
  for (const OneFraction& at : fractions) {
    for (const std::size_t n : {4U, 5U, 6U}) {
      for (const double f : {0.01, 0.1}) {
        const int held =
            times_held(at.law(f), std::span{up_to_32}.first(n), f,
                       [&](const Points& points) { return at.fitted(points).value(); });
        EXPECT_NEAR(held, 950, 30) << at.name << ", f " << f << ", " << n << " points";
      }
    }
  }
}

TEST(UniversalLaw, FindsTheCoefficientsThatPointsWereMadeFrom) {
  // By hand: a = 0.1, b = 0.01, 4 ranks: 4 / (1 + 0.3 + 0.12).
  EXPECT_NEAR(gunthers(0.1, 0.01)(4), 4 / 1.42, 1e-14);
  const auto found = efficiency::usl(points_of(gunthers(0.1, 0.01), up_to_32));
  EXPECT_NEAR(found.value().contention.value, 0.1, 1e-12);
  EXPECT_NEAR(found->coherency.value, 0.01, 1e-12);
  ASSERT_TRUE(found->peak);
  EXPECT_NEAR(*found->peak, 9.486832980505138, 1e-9);  // sqrt(0.9 / 0.01)
}

TEST(UniversalLaw, PromisesNoPeakWhereCoherencyMayBeZero) {
  const auto amdahl_only = efficiency::usl(noisy(gunthers(0.05, 0), up_to_32, 1));
  EXPECT_LE(*amdahl_only.value().coherency.lower, 0);
  EXPECT_FALSE(amdahl_only->peak);
  const auto with_peak = efficiency::usl(noisy(gunthers(0.05, 0.01), up_to_32, 1));
  ASSERT_TRUE(with_peak && with_peak->peak);
  EXPECT_GT(*with_peak->coherency.lower, 0);
  EXPECT_NEAR(*with_peak->peak, 9.75, 2);  // sqrt(0.95 / 0.01)
}

TEST(UniversalLaw, NeedsSixPointsWithTheBaseline) {
  const Law law = gunthers(0.1, 0.01);
  EXPECT_FALSE(efficiency::usl(points_of(law, std::span{up_to_32}.first(5))));
  EXPECT_FALSE(efficiency::usl(points_of(law, std::vector{0.5, 1.0, 2.0, 4.0, 8.0, 16.0})));
  EXPECT_FALSE(efficiency::usl(points_of(law, std::vector{1.0, 2.0, 2.0, 2.0, 2.0, 2.0})))
      << "two rank counts cannot tell two coefficients";
}

TEST(UniversalLaw, IntervalsHoldTheTruth) {
  const std::vector<double> up_to_128{1, 2, 4, 8, 16, 32, 64, 128};
  const Law law = gunthers(0.05, 0.001);
  const auto contention = [](const Points& of) { return efficiency::usl(of).value().contention; };
  const auto coherency = [](const Points& of) { return efficiency::usl(of).value().coherency; };
  for (const std::size_t n : {6U, 8U}) {
    const auto counts = std::span{up_to_128}.first(n);
    EXPECT_GE(times_held(law, counts, 0.05, contention), 920);
    EXPECT_GE(times_held(law, counts, 0.001, coherency), 920);
  }
}

}  // namespace
}  // namespace isoscale::analysis
