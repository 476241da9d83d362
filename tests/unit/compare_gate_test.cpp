// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/differences.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "analysis/compare/compare_render.hpp"
#include "compare_samples.hpp"

namespace isoscale::analysis {
namespace {

using samples::around;
using samples::Compared;
using samples::side;
using samples::with_gate;
using testing::HasSubstr;
using testing::Not;
using Untold = compare::CompareOptions::Untold;

/// A difference whose mean log ratio is known this well.
compare::Difference difference(double ratio, double error, double freedom) {
  compare::Difference at{.curve = 0, .side = 1, .ranks = 2};
  at.log_ratio =
      statistics::Mean{.value = std::log(ratio), .variance = error * error, .freedom = freedom};
  return at;
}

TEST(Gate, ALossAboveItIsARegression) {
  const Compared of{{side("a", around(1)), side("b", around(1.2))}, with_gate(0.05)};
  EXPECT_TRUE(of->gate->fails());
  EXPECT_EQ(of->gate->regressions, 3U);
  for (const compare::Difference& at : of->differences)
    EXPECT_EQ(at.verdict, compare::Verdict::regression);
  EXPECT_THAT(compare::gate_sentence(*of), HasSubstr("gate 5.0%: FAILED"));
}

TEST(Gate, ALossBelowItPasses) {
  const Compared of{{side("a", around(1)), side("b", around(1.005))}, with_gate(0.05)};
  EXPECT_FALSE(of->gate->fails());
  EXPECT_EQ(of->gate->passed, 3U);
  EXPECT_TRUE(of->warnings.empty());
  EXPECT_THAT(compare::gate_sentence(*of), HasSubstr("passed: of 3 points: 3 passed"));
}

TEST(Gate, BetweenTheTwoNothingIsSaid) {
  const std::vector<double> wide{0.9, 1.0, 1.1};
  for (const Untold untold : {Untold::warn, Untold::fail}) {
    const Compared of{{side("a", wide), side("b", wide)}, {.gate = 0.05, .untold = untold}};
    EXPECT_EQ(of->gate->too_noisy, 3U);
    EXPECT_EQ(of->gate->fails(), untold == Untold::fail);
    ASSERT_EQ(of->warnings.size(), 1U);
    EXPECT_THAT(of->warnings[0], HasSubstr("at 3 points"));
  }
}

TEST(Gate, OneLaunchIsNotTested) {
  for (const Untold untold : {Untold::warn, Untold::fail}) {
    const Compared of{{side("a", {1}), side("b", {2})}, {.gate = 0.05, .untold = untold}};
    EXPECT_EQ(of->gate->tested, 0U);
    EXPECT_EQ(of->gate->one_launch, 3U);
    EXPECT_EQ(of->gate->fails(), untold == Untold::fail);
    EXPECT_EQ(of->warnings.size(), 1U);
  }
}

TEST(Gate, APointThatDidNotComeOutIsSaid) {
  auto b = side("b", around(1));
  for (results::RunData& run : b) run.points.pop_back();
  const Compared of{{side("a", around(1)), b}, with_gate(0.05)};
  ASSERT_EQ(of->warnings.size(), 1U);
  EXPECT_THAT(of->warnings[0], HasSubstr("1 of the points and curves of A"));
  EXPECT_EQ(of->gate->absent, 1U);
  EXPECT_FALSE(of->gate->fails());
}

TEST(Gate, AStrictOneFailsForAPointThatDidNotComeOut) {
  auto b = side("b", around(1));
  for (results::RunData& run : b) {
    run.points.back().status = results::PointStatus::failed;
    run.points.back().reason = "a deadlock";
  }
  const Compared of{{side("a", around(1)), b}, {.gate = 0.05, .untold = Untold::fail}};
  EXPECT_EQ(of->gate->passed, 2U);
  EXPECT_TRUE(of->gate->fails());
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
  const compare::Gate gate = compare::pass_through_gate(mixed, 0.05, Untold::warn);
  EXPECT_EQ(gate.regressions, 1U);
  EXPECT_EQ(mixed[0].verdict, compare::Verdict::regression);
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

/// How many of `pairs` pairs of sides the gate of 5% fails, B being `factor` slower.
int fires(int pairs, double factor) {
  std::mt19937_64 random{20'261'121};
  int count = 0;
  for (int i = 0; i < pairs; ++i) {
    auto a = noisy_side("a", 1, random);
    auto b = noisy_side("b", factor, random);
    const Compared of{{std::move(a), std::move(b)}, with_gate(0.05)};
    count += of->gate->fails() ? 1 : 0;
  }
  return count;
}

// A rate of 2.5% gives 5 +- 2 of 200; one that fired on every fifth would give 40.
TEST(Gate, HardlyEverFiresWithoutAChange) { EXPECT_LE(fires(200, 1), 11); }

// At the very gate the test is at its level: 2.5% of 200, and neither none nor thrice as many.
TEST(Gate, KeepsItsLevelAtTheGate) {
  const int count = fires(200, 1 / 0.95);
  EXPECT_GE(count, 1);
  EXPECT_LE(count, 14);
}

// One test at one level: a verdict never contradicts the interval or the sentence beside it.
TEST(Gate, AgreesWithTheIntervalAndTheSentence) {
  std::mt19937_64 random{7};
  std::map<compare::Verdict, int> seen;
  for (int i = 0; i < 60; ++i) {
    auto a = noisy_side("a", 1, random);
    auto b = noisy_side("b", 1 + 0.003 * i, random);
    const Compared of{{std::move(a), std::move(b)}, with_gate(0.05)};
    const compare::Difference& at = of->differences.front();
    ++seen[at.verdict];
    EXPECT_EQ(at.verdict == compare::Verdict::regression, *at.throughput.upper < 0.95) << i;
    EXPECT_EQ(at.verdict == compare::Verdict::passed, *at.throughput.lower > 0.95) << i;
    if (at.verdict != compare::Verdict::regression) continue;
    EXPECT_THAT(compare::throughput_sentence(*of, at), HasSubstr("at least 5.0% lower"));
    EXPECT_THAT(compare::step_sentence(*of, at), Not(HasSubstr("not established")));
  }
  EXPECT_GE(seen[compare::Verdict::regression], 5);
  EXPECT_GE(seen[compare::Verdict::passed], 5);
  EXPECT_GE(seen[compare::Verdict::too_noisy], 5);
}

TEST(Gate, FindsALossOfAFifth) { EXPECT_GE(fires(50, 1.25), 48); }

}  // namespace
}  // namespace isoscale::analysis
