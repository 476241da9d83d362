// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/differences.hpp"

#include <limits>
#include <map>
#include <numbers>
#include <random>

#include "analysis/compare/compare_render.hpp"
#include "compare_samples.hpp"

/// Gates, and the tests of means that they are made of.
namespace isoscale::analysis {
namespace {

using compare::Verdict;
using samples::against_a;
using samples::Compared;
using samples::side;
using samples::side_b;
using Untold = compare::CompareOptions::Untold;

TEST(Gate, CountsVerdictsAndFailsForRegressionsOrWhereItIsStrict) {
  auto without_last = side_b(), failed_last = side_b();
  for (results::RunData& run : without_last) run.points.pop_back();
  for (results::RunData& run : failed_last) {
    run.points.back().status = results::PointStatus::failed;
  }
  const std::vector<double> wide{0.9, 1.0, 1.1};
  struct Case {
    std::string name;
    std::vector<std::vector<results::RunData>> sides;
    compare::Gate counts;
    bool fails = false, fails_if_strict = true;
    std::size_t warnings = 1;
  };
  for (const Case& at :
       std::vector<Case>{{"loss above", against_a(side_b(1.2)), {.regressions = 3}, true, true, 0},
                         {"loss below", against_a(side_b(1.005)), {.passed = 3}, false, false, 0},
                         {"between", {side("a", wide), side("b", wide)}, {.too_noisy = 3}},
                         {"one launch", {side("a", {1}), side("b", {2})}, {.one_launch = 3}},
                         {"absent", against_a(without_last), {.passed = 2, .absent = 1}},
                         {"failed", against_a(failed_last), {.passed = 2, .absent = 1}}}) {
    SCOPED_TRACE(at.name);
    for (const Untold untold : {Untold::warn, Untold::fail}) {
      const Compared of{at.sides, {.gate = 0.05, .untold = untold}};
      const compare::Gate& gate = *of->gate;
      EXPECT_THAT((std::vector{gate.regressions, gate.passed, gate.too_noisy, gate.one_launch,
                               gate.absent}),
                  ElementsAre(at.counts.regressions, at.counts.passed, at.counts.too_noisy,
                              at.counts.one_launch, at.counts.absent));
      EXPECT_EQ(gate.fails(), untold == Untold::fail ? at.fails_if_strict : at.fails);
      EXPECT_EQ(of->warnings.size(), at.warnings);
      EXPECT_EQ(gate.tested, gate.regressions + gate.passed + gate.too_noisy);
    }
  }
}

/// A difference whose mean log ratio is known this well.
compare::Difference difference(double ratio, double error, double freedom) {
  compare::Difference at{.curve = 0, .side = 1, .ranks = 2};
  at.log_ratio =
      statistics::Mean{.value = std::log(ratio), .variance = error * error, .freedom = freedom};
  return at;
}

TEST(Gate, IsCorrectedForTheNumberOfPoints) {
  // t = 2.776 has p = 0.025 with 4 degrees of freedom: enough alone, not among three.
  const double error = 0.01, t = 2.85;
  const double ratio = 0.95 * std::exp(-t * error);
  std::vector<compare::Difference> alone{difference(ratio, error, 4)};
  EXPECT_EQ(compare::pass_through_gate(alone, 0.05, Untold::warn).regressions, 1U);
  std::vector<compare::Difference> three(3, difference(ratio, error, 4));
  EXPECT_EQ(compare::pass_through_gate(three, 0.05, Untold::warn).regressions, 0U);
  EXPECT_NEAR(*three[0].p_regression, 3 * *alone[0].p_regression, 1e-12);
  // A clear one beside two that are clearly not keeps its verdict.
  std::vector<compare::Difference> mixed{difference(0.5, error, 4), difference(1, error, 4),
                                         difference(1, error, 4)};
  EXPECT_EQ(compare::pass_through_gate(mixed, 0.05, Untold::warn).regressions, 1U);
  EXPECT_EQ(mixed[0].verdict, Verdict::regression);
}

/// Five launches of one point, launch by launch 3% and step by step 2% apart.
std::vector<results::RunData> noisy_side(const std::string& name, double factor,
                                         std::mt19937_64& random) {
  std::normal_distribution<double> launches{0, 0.03}, steps{0, 0.02};
  std::vector<results::RunData> runs;
  for (int i = 0; i < 5; ++i) {
    runs.push_back(samples::launch(name + std::to_string(i), 1, 2));
    results::PointData& point = samples::add(runs.back(), {.dp = 2}, 0.05);
    const double of_launch = factor * std::exp(launches(random));
    for (auto& step : point.step_times) {
      step.assign(step.size(), 0.05 * of_launch * std::exp(steps(random)));
    }
  }
  return runs;
}

Compared noisy_pair(double factor, std::mt19937_64& random) {
  auto a = noisy_side("a", 1, random);
  auto b = noisy_side("b", factor, random);
  return Compared{{std::move(a), std::move(b)}, {.gate = 0.05}};
}

/// How many of `pairs` pairs of sides the gate of 5% fails, B being `factor` slower.
int fires(int pairs, double factor) {
  std::mt19937_64 random{20'261'121};
  int count = 0;
  for (int i = 0; i < pairs; ++i) count += noisy_pair(factor, random)->gate->fails() ? 1 : 0;
  return count;
}

TEST(Gate, FiresAsOftenAsItsLevelSays) {
  // Without a change, a rate of 2.5% gives 5 +- 2 of 200; one that fired on every fifth gives 40.
  EXPECT_LE(fires(200, 1), 11);
  // At the very gate the test is at its level: 2.5% of 200, and neither none nor thrice as many.
  const int at_the_gate = fires(200, 1 / 0.95);
  EXPECT_GE(at_the_gate, 1);
  EXPECT_LE(at_the_gate, 14);
  EXPECT_GE(fires(50, 1.25), 48);
}

/// One test at one level: a verdict never contradicts the interval or the sentence beside it.
TEST(Gate, AgreesWithTheIntervalAndTheSentence) {
  std::mt19937_64 random{7};
  std::map<Verdict, int> seen;
  for (int i = 0; i < 60; ++i) {
    const Compared of = noisy_pair(1 + 0.003 * i, random);
    const compare::Difference& at = of->differences.front();
    ++seen[at.verdict];
    EXPECT_EQ(at.verdict == Verdict::regression, *at.throughput.upper < 0.95) << i;
    EXPECT_EQ(at.verdict == Verdict::passed, *at.throughput.lower > 0.95) << i;
    if (at.verdict != Verdict::regression) continue;
    EXPECT_THAT(compare::throughput_sentence(*of, at), HasSubstr("at least 5.0% lower"));
    EXPECT_THAT(compare::step_sentence(*of, at), Not(HasSubstr("not established")));
  }
  for (const Verdict verdict : {Verdict::regression, Verdict::passed, Verdict::too_noisy}) {
    EXPECT_GE(seen[verdict], 5);
  }
}

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

TEST(StudentDistribution, TailIsTheIntegralOfTheDensityAndQuantilesAreThoseOfTheTable) {
  using statistics::student_quantile;
  using statistics::student_tail;
  for (const double freedom : {1.0, 1.7, 2.0, 3.4, 4.0, 8.0, 29.5, 400.0}) {
    for (const double t : {0.01, 0.5, 1.0, 2.5, 6.0, 40.0}) {
      EXPECT_NEAR(student_tail(t, freedom), tail_by_density(t, freedom), 1e-9)
          << t << " of " << freedom;
      EXPECT_NEAR(student_tail(-t, freedom), 1 - student_tail(t, freedom), 1e-15);
    }
  }
  EXPECT_NEAR(student_tail(0, 3), 0.5, 1e-15);
  // One degree of freedom is Cauchy's: 1/2 - atan(t) / pi.
  EXPECT_NEAR(student_tail(12.706, 1), 0.5 - std::atan(12.706) / std::numbers::pi, 1e-13);
  for (std::size_t freedom = 1; freedom <= 30; ++freedom) {
    EXPECT_NEAR(student_quantile(0.025, static_cast<double>(freedom)),
                statistics::student_t(freedom), 5e-4);
  }
  EXPECT_NEAR(student_quantile(0.05, 8), 1.8595, 1e-4);
  EXPECT_NEAR(student_quantile(0.95, 8), -1.8595, 1e-4);
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

TEST(Welch, DifferenceOfUnlikeSpreadsAndOfNone) {
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
  const statistics::Mean sure = statistics::difference({.value = 1, .variance = 0, .freedom = 2},
                                                       {.value = 0.9, .variance = 0, .freedom = 2});
  EXPECT_EQ(p_below(sure, -0.05), 0);
  EXPECT_EQ(p_above(sure, -0.05), 1);
  EXPECT_EQ(*located(sure).lower, sure.value);
}

TEST(Welch, HolmAdjustsByWhatIsLeft) {
  using testing::DoubleNear;
  // Sorted 0.005 * 4, 0.01 * 3, 0.03 * 2, 0.04 * 1; none may be below one before it.
  EXPECT_THAT(statistics::holm(std::vector{0.01, 0.04, 0.03, 0.005}),
              ElementsAre(DoubleNear(0.03, 1e-15), DoubleNear(0.06, 1e-15), DoubleNear(0.06, 1e-15),
                          DoubleNear(0.02, 1e-15)));
  EXPECT_THAT(statistics::holm(std::vector{0.5, 0.9}), ElementsAre(1, 1));
  EXPECT_TRUE(statistics::holm({}).empty());
}

}  // namespace
}  // namespace isoscale::analysis
