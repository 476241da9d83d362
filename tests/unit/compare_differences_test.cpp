// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/differences.hpp"

#include "analysis/compare/compare_render.hpp"
#include "compare_samples.hpp"

/// The tests check how sides differ, and why.
namespace isoscale::analysis {
namespace {

using compare::Verdict;
using samples::against_a;
using samples::around;
using samples::Compared;
using samples::side;
using samples::side_b;
using samples::traced_a;
using samples::traced_b;

/// The verdicts on the points of one side against the first.
std::vector<Verdict> verdicts(const compare::Comparison& of) {
  std::vector<Verdict> result;
  for (const compare::Difference& at : of.differences) result.push_back(at.verdict);
  return result;
}

TEST(Compare, RatioHasWelchsInterval) {
  const Compared of{against_a(side_b(1.1))};
  EXPECT_THAT(verdicts(*of), ElementsAre(Verdict::slower, Verdict::slower, Verdict::slower));
  const compare::Difference& at = of->differences[2];
  EXPECT_EQ(at.ranks, 4);
  EXPECT_NEAR(at.throughput.value, 1 / 1.1, 1e-12);
  // Either side's logarithms: -0.01, 0, 0.01 around; like spreads, so 4 degrees of freedom.
  const double half = 2.776445 * std::sqrt(2 * 0.01 * 0.01 / 3);
  EXPECT_NEAR(*at.throughput.lower, std::exp(-half) / 1.1, 1e-7);
  EXPECT_NEAR(*at.throughput.upper, std::exp(half) / 1.1, 1e-7);
  EXPECT_EQ(verdicts(*Compared{against_a(side_b(0.9))})[0], Verdict::faster);
  EXPECT_EQ(verdicts(*Compared{against_a(side_b(1.01))})[0], Verdict::no_difference);
}

TEST(Compare, OverAllPointsALaunchCountsOnce) {
  const Compared of{against_a(side_b(1.25))};
  ASSERT_EQ(of->overall.size(), 1U);
  const compare::Overall& at = of->overall.front();
  EXPECT_EQ(at.points, 3U);
  EXPECT_NEAR(at.throughput.value, 0.8, 1e-9);
  // Launches are off at all points alike: three points know no more than one.
  EXPECT_NEAR(*at.throughput.lower, *of->differences[1].throughput.lower, 1e-9);
  EXPECT_NEAR(*at.throughput.upper, *of->differences[1].throughput.upper, 1e-9);
  EXPECT_THAT(compare::overall_sentence(*of, at), HasSubstr("20% slower than A"));
  const Compared few{{side("a", {1}), side("b", {0.2})}};
  EXPECT_FALSE(few->overall.front().throughput.lower);
  EXPECT_THAT(compare::overall_sentence(*few, few->overall.front()), HasSubstr("5.0x as fast"));
  const Compared same{against_a(side_b())};
  EXPECT_THAT(compare::overall_sentence(*same, same->overall.front()), HasSubstr("no difference"));
}

TEST(Compare, EfficiencyIsPairedWithinALaunch) {
  // A factor that a launch has at all ranks alike cancels: launches differ by 5%, their
  // efficiencies not at all.
  auto b = side("b", {0.95, 1, 1.05});
  for (results::RunData& run : b) samples::slow_down(run.points[2], 1.25);
  const Compared of{{side("a", {0.95, 1, 1.05}), b}};
  const compare::Difference& at = of->differences[2];
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
      runs.push_back(samples::launch(id + "one", 1, 4));
      samples::add(runs.back(), {}, 0.080 * off);
      runs.push_back(samples::launch(id + "two", 1, 4));
      samples::add(runs.back(), {.dp = 2}, 0.050 * off * factor);
    }
    return runs;
  };
  const Compared of{{apart("a", 1), apart("b", 1.1)}};
  ASSERT_EQ(of->differences.size(), 2U);
  const compare::Difference& at = of->differences[1];
  ASSERT_TRUE(at.efficiency && at.efficiency->lower);
  const double a = 0.8, b = 0.8 / 1.1;
  EXPECT_NEAR(at.efficiency->value, b - a, 1e-9);
  // Each efficiency: relative variance 2 * 0.01^2 / 3 with 4 degrees of freedom; both: 7.93.
  const double half = 2.31 * std::sqrt((a * a + b * b) * 2 * 0.01 * 0.01 / 3);
  EXPECT_NEAR((*at.efficiency->upper - *at.efficiency->lower) / 2, half, 0.01 * half);
}

TEST(Compare, TheStepOfADifferentBaselineIsExplained) {
  auto b = samples::traced_side("b", 0.050, 0.006, 0);
  for (results::RunData& run : b) samples::slow_down(run.points[0], 1.2);
  const Compared of{{samples::traced_side("a", 0.050, 0.006, 0), b}};
  const compare::Difference& at = of->differences[0];
  EXPECT_EQ(at.ranks, 1);
  EXPECT_THAT(compare::step_sentence(*of, at),
              AllOf(HasSubstr("20.0% longer at 1"), HasSubstr("20.0% traced steps")));
  EXPECT_EQ(compare::efficiency_sentence(*of, at), "");
}

void expect_parts(const std::vector<compare::CausePart>& parts,
                  const std::vector<std::pair<std::string, double>>& wanted) {
  ASSERT_EQ(parts.size(), wanted.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].cause, wanted[i].first);
    EXPECT_NEAR(parts[i].value, wanted[i].second, 1e-15) << parts[i].cause;
  }
}

TEST(Compare, CoarserCausesOnOneSideAreCoarseOnBoth) {
  const efficiency::Waterfall fine{.ideal = 1,
                                   .measured = 2,
                                   .lost = {{"GEMMs", 0.1},
                                            {"GEMM overlap", 0.2},
                                            {"dp transfer", 0.3},
                                            {"bubble", 0},
                                            {"imbalance", 0.1},
                                            {"noise", 0.1},
                                            {"gap", 0.2}},
                                   .missing = {}};
  const efficiency::Waterfall coarse{
      .ideal = 1,
      .measured = 4,
      .lost = {{"GEMMs", 1}, {"communication", 1.2}, {"gap", 0.8}},
      .missing = {"GEMMs by themselves and their overlap are not separated"}};
  expect_parts(compare::efficiency_causes(fine, coarse), {{"GEMMs", 1 / 4.0 - 0.3 / 2},
                                                          {"communication", 1.2 / 4 - 0.5 / 2},
                                                          {"gap", 0.8 / 4 - 0.2 / 2}});
  // Causes that both sides tell apart stay apart.
  const efficiency::Waterfall a{
      .ideal = 1, .measured = 2, .lost = {{"GEMMs", 0.4}, {"GEMM overlap", 0.6}}, .missing = {}};
  const efficiency::Waterfall b{
      .ideal = 1, .measured = 4, .lost = {{"GEMMs", 1}, {"GEMM overlap", 2}}, .missing = {}};
  expect_parts(compare::efficiency_causes(a, b),
               {{"GEMMs", 1 / 4.0 - 0.4 / 2}, {"GEMM overlap", 2 / 4.0 - 0.6 / 2}});
}

TEST(Compare, SmallCausesAreSummedAndWhatIsUntracedIsLastAndNoCause) {
  expect_parts(compare::above({{"a", 0.001}, {"b", -0.2}, {"c", 0.3}, {"d", 0.002}}, 0.005),
               {{"c", 0.3}, {"b", -0.2}, {"other causes", 0.003}});
  expect_parts(compare::above({{"untraced", 0.4}, {"a", 0.001}, {"b", 0.1}}, 0.005),
               {{"b", 0.1}, {"other causes", 0.001}, {"untraced", 0.4}});
  auto b = traced_b();
  for (results::RunData& run : b) samples::slow_down(run.points[1], 0.92);
  const Compared of{{traced_a(), b}};
  // 56.0 ms * 0.92 is 3% above 50 ms, and 4.5 ms less than what was traced.
  EXPECT_THAT(compare::step_sentence(*of, of->differences[1]),
              AllOf(HasSubstr("-9.0% traced steps differ"), HasSubstr("uncertain")));
  const Compared plain{{traced_a(), traced_b()}};
  EXPECT_THAT(compare::step_sentence(*plain, plain->differences[1]), Not(HasSubstr("uncertain")));
}

TEST(Compare, WhatIsNotEstablishedIsNotExplainedFlatly) {
  const auto doubts = AllOf(HasSubstr("not established: B's"), HasSubstr("; uncertain"));
  // 12% apart, and launches that differ by half.
  auto wide = traced_b(), few = traced_b();
  samples::slow_down(wide[1].points[1], 1.5);
  samples::slow_down(wide[2].points[1], 0.7);
  few.pop_back();
  const Compared noisy{{traced_a(), wide}}, two{{traced_a(), few}};
  EXPECT_EQ(noisy->differences[1].verdict, Verdict::no_difference);
  EXPECT_THAT(compare::step_sentence(*noisy, noisy->differences[1]), doubts);
  EXPECT_THAT(compare::efficiency_sentence(*noisy, noisy->differences[1]),
              AllOf(HasSubstr("no difference"), HasSubstr("uncertain causes")));
  EXPECT_THAT(compare::step_sentence(*two, two->differences[1]), doubts);
  EXPECT_THAT(compare::efficiency_sentence(*two, two->differences[1]), doubts);
  for (const auto& sentence : {compare::efficiency_sentence, compare::throughput_sentence}) {
    EXPECT_THAT(sentence(*two, two->differences[1]), HasSubstr("and two launches of"));
  }
}

TEST(Compare, AnIntervalThatDoesNotHoldItsValueSaysSo) {
  const statistics::Located off{.value = 0.02, .lower = -0.05, .upper = -0.01};
  EXPECT_FALSE(compare::is_established(off, 0));
  EXPECT_TRUE(compare::is_established({.value = -0.02, .lower = -0.05, .upper = -0.01}, 0));
  EXPECT_EQ(compare::points_interval(off), "-5.0 to -1.0 !");
  EXPECT_EQ(compare::change_interval({.value = 0.9, .lower = 0.95, .upper = 0.97}),
            "-5.0% to -3.0% !");
  const Compared of{against_a(side_b())};
  compare::Difference at = of->differences[1];
  at.efficiency = off;
  EXPECT_THAT(compare::efficiency_sentence(*of, at),
              AllOf(HasSubstr("no difference"), HasSubstr("2 ranks: 2.0 points"),
                    HasSubstr("-5.0 to -1.0")));
}

TEST(Compare, AnUnevenIntervalIsShownByItsEnds) {
  EXPECT_EQ(compare::with_interval({.value = 0.647, .lower = 0.04, .upper = 12.6}, "%", ""),
            "64.7% (4.0 to 1260.0)");
  EXPECT_EQ(compare::with_interval({.value = 0.8, .lower = 0.773, .upper = 0.829}, "%", ""),
            "80.0% ± 2.8");
  EXPECT_EQ(compare::with_interval({.value = 0.112, .lower = 0.09, .upper = 0.141}, "", " points"),
            "11.2 points (9.0 to 14.1)");
  EXPECT_EQ(compare::with_interval({.value = 0.112}, "", " points"), "11.2 points");
}

}  // namespace
}  // namespace isoscale::analysis
