// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <numbers>

#include "analysis/compare/compare_render.hpp"
#include "analysis/compare/comparison_internals.hpp"
#include "compare_samples.hpp"

/// The tests check how sides differ, and why; gates; and the tests of means that both are made of.
namespace isoscale::analysis::compare {
namespace {

TEST(Compare, RatioHasWelchsInterval) {
  const Compared of{against_a(side_b(1.1))};
  EXPECT_THAT(of->differences, SizeIs(3));
  for (const auto& [factor, verdict] :
       {std::pair{1.1, Verdict::slower}, {0.9, Verdict::faster}, {1.01, Verdict::no_difference}}) {
    const Compared at_factor{against_a(side_b(factor))};
    EXPECT_THAT(at_factor->differences, Each(Field(&Difference::verdict, verdict)));
  }
  const Difference& at = of->differences[2];
  EXPECT_EQ(at.ranks, 4);
  EXPECT_NEAR(at.throughput.value, 1 / 1.1, 1e-12);
  // Either side's logarithms: -0.01, 0, 0.01 around; like spreads, so 4 degrees of freedom.
  const double half = 2.776445 * std::sqrt(2 * 0.01 * 0.01 / 3);
  EXPECT_NEAR(*at.throughput.lower, std::exp(-half) / 1.1, 1e-7);
  EXPECT_NEAR(*at.throughput.upper, std::exp(half) / 1.1, 1e-7);
}

TEST(Compare, OverAllPointsALaunchCountsOnce) {
  const Compared of{against_a(side_b(1.25))};
  ASSERT_EQ(of->overall.size(), 1U);
  const Overall& at = of->overall.front();
  EXPECT_EQ(at.points, 3U);
  EXPECT_NEAR(at.throughput.value, 0.8, 1e-9);
  // Launches are off at all points alike: three points know no more than one.
  EXPECT_NEAR(*at.throughput.lower, *of->differences[1].throughput.lower, 1e-9);
  EXPECT_NEAR(*at.throughput.upper, *of->differences[1].throughput.upper, 1e-9);
  EXPECT_THAT(overall_sentence(*of, at), HasSubstr("20% slower than A"));
  const Compared few{{side("a", {1}), side("b", {0.2})}};
  EXPECT_FALSE(few->overall.front().throughput.lower);
  EXPECT_THAT(overall_sentence(*few, few->overall.front()), HasSubstr("5.0x as fast"));
  const Compared same{against_a(side_b())};
  EXPECT_THAT(overall_sentence(*same, same->overall.front()), HasSubstr("no difference"));
  const Compared nearly{{side("a", {1, 1.0001, 0.9999}), side("b", {1, 1.0001, 0.9999})}};
  EXPECT_THAT(overall_sentence(*nearly, nearly->overall.front()),
              AllOf(HasSubstr("within 0.1%"), Not(HasSubstr("between"))));
}

TEST(Compare, EfficiencyIsPairedWithinALaunch) {
  // A factor that a launch has at all ranks alike cancels: launches differ by 5%, their
  // efficiencies not at all.
  auto b = side("b", {0.95, 1, 1.05});
  for (results::RunData& run : b) slow_down(run.points[2], 1.25);
  const Compared of{{side("a", {0.95, 1, 1.05}), b}};
  const Difference& at = of->differences[2];
  ASSERT_TRUE(at.efficiency);
  // 80 / 30 / 4 = 66.7%, a fifth less on B.
  EXPECT_NEAR(at.efficiency->value, -80.0 / 30 / 4 / 5, 1e-9);
  EXPECT_NEAR(*at.efficiency->lower, at.efficiency->value, 1e-6);
  EXPECT_NEAR(*at.efficiency->upper, at.efficiency->value, 1e-6);
  EXPECT_FALSE(of->differences[0].efficiency) << "the baseline";
  EXPECT_LT(*at.throughput.lower, 0.75) << "while throughput varies as launches do";
}

TEST(Compare, EfficiencyOfLaunchesApartHasTheErrorsOfBoth) {
  const auto apart = [](const std::string& name, double factor) {
    std::vector<results::RunData> runs;
    for (const double off : around(1)) {
      const std::string id = name + std::to_string(runs.size());
      runs.push_back(launch(id + "one", 1, 4));
      add(runs.back(), {}, 0.080 * off);
      runs.push_back(launch(id + "two", 1, 4));
      add(runs.back(), {.dp = 2}, 0.050 * off * factor);
    }
    return runs;
  };
  const Compared of{{apart("a", 1), apart("b", 1.1)}};
  ASSERT_EQ(of->differences.size(), 2U);
  const Difference& at = of->differences[1];
  ASSERT_TRUE(at.efficiency && at.efficiency->lower);
  const double a = 0.8, b = 0.8 / 1.1;
  EXPECT_NEAR(at.efficiency->value, b - a, 1e-9);
  // Each efficiency: relative variance 2 * 0.01^2 / 3 with 4 degrees of freedom; both: 7.93.
  const double half = 2.31 * std::sqrt((a * a + b * b) * 2 * 0.01 * 0.01 / 3);
  EXPECT_NEAR((*at.efficiency->upper - *at.efficiency->lower) / 2, half, 0.01 * half);
}

TEST(Compare, AStepThatIsScaledToOtherWorkIsNamedAsMeasuredToo) {
  const auto three_times = changed(traced_side("b", 0.150, 0.006, 0),
                                   [](results::PointData& at) { at.work_per_step *= 2; });
  const Compared of{{traced_side("a", 0.050, 0.006, 0), three_times}, {.anyway = true}};
  const Difference& at = of->differences[1];
  EXPECT_EQ(work_ratio(*of, at), 2);
  EXPECT_THAT(step_sentence(*of, at), HasSubstr("150.1 ms against 100 ms (50.02 ms scaled to 2x"));
  const Compared same{against_a(side_b(1.2))};
  EXPECT_EQ(work_ratio(*same, same->differences[1]), 1);
  EXPECT_THAT(step_sentence(*same, same->differences[1]), Not(HasSubstr("scaled")));
}

void expect_parts(const std::vector<CausePart>& parts,
                  const std::vector<std::pair<std::string, double>>& wanted) {
  ASSERT_EQ(parts.size(), wanted.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].cause, wanted[i].first);
    EXPECT_NEAR(parts[i].value, wanted[i].second, 1e-15) << parts[i].cause;
  }
}

TEST(Compare, CoarserCausesOnOneSideAreCoarseOnBoth) {
  const auto waterfall = [](double measured, const std::vector<efficiency::LostTime>& lost,
                            const std::vector<std::string>& missing = {}) {
    return efficiency::Waterfall{
        .ideal = 1, .measured = measured, .lost = lost, .missing = missing};
  };
  const auto fine = waterfall(2, {{"GEMMs", 0.1},
                                  {"GEMM overlap", 0.2},
                                  {"dp transfer", 0.3},
                                  {"bubble", 0},
                                  {"imbalance", 0.1},
                                  {"noise", 0.1},
                                  {"gap", 0.2}});
  const auto coarse = waterfall(4, {{"GEMMs", 1}, {"communication", 1.2}, {"gap", 0.8}},
                                {"GEMMs by themselves and their overlap are not separated"});
  expect_parts(efficiency_causes(fine, coarse), {{"GEMMs", 1 / 4.0 - 0.3 / 2},
                                                 {"communication", 1.2 / 4 - 0.5 / 2},
                                                 {"gap", 0.8 / 4 - 0.2 / 2}});
  // Causes that both sides tell apart stay apart.
  const auto a = waterfall(2, {{"GEMMs", 0.4}, {"GEMM overlap", 0.6}});
  const auto b = waterfall(4, {{"GEMMs", 1}, {"GEMM overlap", 2}});
  expect_parts(efficiency_causes(a, b),
               {{"GEMMs", 1 / 4.0 - 0.4 / 2}, {"GEMM overlap", 2 / 4.0 - 0.6 / 2}});
}

TEST(Compare, SmallCausesAreSummedAndWhatIsUntracedIsLastAndNoCause) {
  expect_parts(above({{"a", 0.001}, {"b", -0.2}, {"c", 0.3}, {"d", 0.002}}, 0.005),
               {{"c", 0.3}, {"b", -0.2}, {"other causes", 0.003}});
  expect_parts(above({{"untraced", 0.4}, {"a", 0.001}, {"b", 0.1}}, 0.005),
               {{"b", 0.1}, {"other causes", 0.001}, {"untraced", 0.4}});
  expect_parts(compare::above({{"untraced", -0.002}, {"a", 0.001}, {"b", 0.1}}, 0.005),
               {{"b", 0.1}, {"other causes", 0.001}, {"untraced", -0.002}});
  expect_parts(compare::above({{"untraced", 0}, {"b", 0.1}}, 0.005), {{"b", 0.1}});
  auto b = traced_b();
  for (results::RunData& run : b) slow_down(run.points[1], 0.92);
  const Compared of{{traced_a(), b}};
  // 56.0 ms * 0.92 is 3% above 50 ms, and 4.5 ms less than what was traced.
  EXPECT_THAT(step_sentence(*of, of->differences[1]),
              AllOf(HasSubstr("-9.0% traced steps differ"), HasSubstr("uncertain")));
  const Compared plain{{traced_a(), traced_b()}};
  EXPECT_THAT(step_sentence(*plain, plain->differences[1]), Not(HasSubstr("uncertain")));
}

TEST(Compare, WhatIsNotEstablishedIsNotExplainedFlatly) {
  const auto doubts = AllOf(HasSubstr("not established: B's"), HasSubstr("; uncertain"));
  // 12% apart, and launches that differ by half.
  auto wide = traced_b(), few = traced_b();
  slow_down(wide[1].points[1], 1.5);
  slow_down(wide[2].points[1], 0.7);
  few.pop_back();
  const Compared noisy{{traced_a(), wide}}, two{{traced_a(), few}};
  EXPECT_EQ(noisy->differences[1].verdict, Verdict::no_difference);
  EXPECT_THAT(step_sentence(*noisy, noisy->differences[1]), doubts);
  EXPECT_THAT(efficiency_sentence(*noisy, noisy->differences[1]),
              AllOf(HasSubstr("no difference"), HasSubstr("uncertain causes")));
  EXPECT_THAT(step_sentence(*two, two->differences[1]), doubts);
  EXPECT_THAT(efficiency_sentence(*two, two->differences[1]), doubts);
  for (const auto& sentence : {efficiency_sentence, throughput_sentence}) {
    EXPECT_THAT(sentence(*two, two->differences[1]), HasSubstr("and two launches of"));
  }
}

TEST(Compare, AnIntervalThatDoesNotHoldItsValueSaysSoAndAnUnevenOneIsShownByItsEnds) {
  const statistics::Located off{.value = 0.02, .lower = -0.05, .upper = -0.01};
  EXPECT_FALSE(is_established(off, 0));
  EXPECT_TRUE(is_established({.value = -0.02, .lower = -0.05, .upper = -0.01}, 0));
  EXPECT_EQ(points_interval(off), "-5.0 to -1.0 !");
  EXPECT_EQ(change_interval({.value = 0.9, .lower = 0.95, .upper = 0.97}), "-5.0% to -3.0% !");
  const Compared of{against_a(side_b())};
  Difference at = of->differences[1];
  at.efficiency = off;
  EXPECT_THAT(efficiency_sentence(*of, at),
              AllOf(HasSubstr("no difference"), HasSubstr("2 ranks: 2.0 points"),
                    HasSubstr("-5.0 to -1.0")));
  EXPECT_EQ(with_interval({.value = 0.647, .lower = 0.04, .upper = 12.6}, "%", ""),
            "64.7% (4.0 to 1260.0)");
  EXPECT_EQ(with_interval({.value = 0.8, .lower = 0.773, .upper = 0.829}, "%", ""), "80.0% ± 2.8");
  EXPECT_EQ(with_interval({.value = 0.112, .lower = 0.09, .upper = 0.141}, "", " points"),
            "11.2 points (9.0 to 14.1)");
  EXPECT_EQ(with_interval({.value = 0.112}, "", " points"), "11.2 points");
}

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
    Gate counts;
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
    for (const bool strict : {false, true}) {
      const Compared of{at.sides, {.gate = 0.05, .strict = strict}};
      const Gate& gate = *of->gate;
      EXPECT_THAT((std::vector{gate.regressions, gate.passed, gate.too_noisy, gate.one_launch,
                               gate.absent}),
                  ElementsAre(at.counts.regressions, at.counts.passed, at.counts.too_noisy,
                              at.counts.one_launch, at.counts.absent));
      EXPECT_EQ(gate.fails(), strict ? at.fails_if_strict : at.fails);
      EXPECT_EQ(of->warnings.size(), at.warnings);
      EXPECT_EQ(gate.tested, gate.regressions + gate.passed + gate.too_noisy);
    }
  }
}

/// A difference whose mean log ratio is known this well.
Difference difference(double ratio, double error, double freedom) {
  Difference at{.curve = 0, .side = 1, .ranks = 2};
  at.log_ratio =
      statistics::Mean{.value = std::log(ratio), .variance = error * error, .freedom = freedom};
  return at;
}

TEST(Gate, IsCorrectedForTheNumberOfPoints) {
  // t = 2.776 has p = 0.025 with 4 degrees of freedom: enough alone, not among three.
  const double error = 0.01, t = 2.85;
  const double ratio = 0.95 * std::exp(-t * error);
  std::vector<Difference> alone{difference(ratio, error, 4)};
  EXPECT_EQ(pass_through_gate(alone, 0.05).regressions, 1U);
  std::vector<Difference> three(3, difference(ratio, error, 4));
  EXPECT_EQ(pass_through_gate(three, 0.05).regressions, 0U);
  EXPECT_NEAR(*three[0].p_regression, 3 * *alone[0].p_regression, 1e-12);
  // A clear one beside two that are clearly not keeps its verdict.
  std::vector<Difference> mixed{difference(0.5, error, 4), difference(1, error, 4),
                                difference(1, error, 4)};
  EXPECT_EQ(pass_through_gate(mixed, 0.05).regressions, 1U);
  EXPECT_EQ(mixed[0].verdict, Verdict::regression);
}

/// Five launches of one point, launch by launch 3% and step by step 2% apart.
std::vector<results::RunData> noisy_side(const std::string& name, double factor,
                                         std::mt19937_64& random) {
  std::normal_distribution<double> launches{0, 0.03}, steps{0, 0.02};
  std::vector<results::RunData> runs;
  for (int i = 0; i < 5; ++i) {
    runs.push_back(launch(name + std::to_string(i), 1, 2));
    results::PointData& point = add(runs.back(), {.dp = 2}, 0.05);
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
    const Difference& at = of->differences.front();
    ++seen[at.verdict];
    EXPECT_EQ(at.verdict == Verdict::regression, *at.throughput.upper < 0.95) << i;
    EXPECT_EQ(at.verdict == Verdict::passed, *at.throughput.lower > 0.95) << i;
    if (at.verdict != Verdict::regression) continue;
    EXPECT_THAT(throughput_sentence(*of, at), HasSubstr("at least 5.0% lower"));
    EXPECT_THAT(step_sentence(*of, at), Not(HasSubstr("not established")));
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
  // Sorted 0.005 * 4, 0.01 * 3, 0.03 * 2, 0.04 * 1; none may be below one before it.
  EXPECT_THAT(statistics::holm(std::vector{0.01, 0.04, 0.03, 0.005}),
              ElementsAre(DoubleNear(0.03, 1e-15), DoubleNear(0.06, 1e-15), DoubleNear(0.06, 1e-15),
                          DoubleNear(0.02, 1e-15)));
  EXPECT_THAT(statistics::holm(std::vector{0.5, 0.9}), ElementsAre(1, 1));
  EXPECT_TRUE(statistics::holm({}).empty());
}

}  // namespace
}  // namespace isoscale::analysis::compare
