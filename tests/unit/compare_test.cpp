// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/comparison.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/compare_render.hpp"
#include "analysis/compare/differences.hpp"
#include "analysis/compare/sides.hpp"
#include "analysis/compare/unlike_settings.hpp"
#include "base/error.hpp"
#include "compare_samples.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis {
namespace {

using samples::add;
using samples::anyway;
using samples::around;
using samples::changed;
using samples::Compared;
using samples::launch;
using samples::side;
using samples::traced_side;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> whats(const compare::Comparison& of) {
  std::vector<std::string> all;
  for (const compare::Unlike& at : of.unlike) all.push_back(at.what);
  return all;
}

std::string refusal(std::vector<std::vector<results::RunData>> sides,
                    const compare::CompareOptions& options = {}) {
  try {
    const Compared of{std::move(sides), options};
  } catch (const base::UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Compare, RatioHasWelchsInterval) {
  const Compared of{{side("a", around(1)), side("b", around(1.1))}};
  ASSERT_EQ(of->differences.size(), 3U);
  const compare::Difference& at = of->differences[2];
  EXPECT_EQ(at.ranks, 4);
  EXPECT_NEAR(at.throughput.value, 1 / 1.1, 1e-12);
  // Either side's logarithms: -0.01, 0, 0.01 around; like spreads, so 4 degrees of freedom.
  const double half = 2.776445 * std::sqrt(2 * 0.01 * 0.01 / 3);
  EXPECT_NEAR(*at.throughput.lower, std::exp(-half) / 1.1, 1e-7);
  EXPECT_NEAR(*at.throughput.upper, std::exp(half) / 1.1, 1e-7);
  EXPECT_EQ(at.verdict, compare::Verdict::slower);
  EXPECT_EQ(Compared({side("a", around(1)), side("b", around(0.9))})->differences[0].verdict,
            compare::Verdict::faster);
  EXPECT_EQ(Compared({side("a", around(1)), side("b", around(1.01))})->differences[0].verdict,
            compare::Verdict::no_difference);
}

TEST(Compare, FewLaunchesClaimNothing) {
  for (const std::vector<double>& factors : {std::vector{1.5}, {1.5, 1.4}}) {
    const Compared of{{side("a", around(1)), side("b", factors)}};
    const compare::Difference& at = of->differences[1];
    EXPECT_EQ(at.verdict, compare::Verdict::one_launch);
    EXPECT_FALSE(at.throughput.lower || at.throughput.upper);
    EXPECT_THAT(compare::throughput_sentence(*of, at),
                HasSubstr(factors.size() == 1 ? "one launch of B" : "two launches of B"));
    EXPECT_THAT(compare::throughput_sentence(*of, at), HasSubstr("at least 3 launches"));
  }
}

TEST(Compare, OverAllPointsALaunchCountsOnce) {
  const Compared of{{side("a", around(1)), side("b", around(1.25))}};
  ASSERT_EQ(of->overall.size(), 1U);
  const compare::Overall& at = of->overall.front();
  EXPECT_EQ(at.points, 3U);
  EXPECT_NEAR(at.throughput.value, 0.8, 1e-9);
  // Launches are off at all points alike: three points know no more than one.
  EXPECT_NEAR(*at.throughput.lower, *of->differences[1].throughput.lower, 1e-9);
  EXPECT_NEAR(*at.throughput.upper, *of->differences[1].throughput.upper, 1e-9);
  EXPECT_THAT(compare::overall_sentence(*of, at),
              StartsWith("B is 20% slower than A over 3 points"));
  const Compared few{{side("a", {1}), side("b", {0.2})}};
  EXPECT_FALSE(few->overall.front().throughput.lower);
  EXPECT_THAT(compare::overall_sentence(*few, few->overall.front()), HasSubstr("5.0x as fast"));
  const Compared same{{side("a", around(1)), side("b", around(1))}};
  EXPECT_THAT(compare::overall_sentence(*same, same->overall.front()),
              StartsWith("no difference is shown"));
}

TEST(Compare, LaunchesOfFewStepsCountBesideOthers) {
  auto b = side("b", around(1.2));
  for (const std::size_t run : {0U, 1U}) {
    for (results::PointData& point : b[run].points) point.step_times.resize(4);
  }
  const Compared of{{side("a", around(1)), b}};
  EXPECT_EQ(of->differences[1].launches, 3U);
  EXPECT_EQ(of->differences[1].verdict, compare::Verdict::slower);
  EXPECT_TRUE(
      results::has_label(of->curves[0].sides[1]->curve.points[1].labels, results::few_steps));
}

TEST(Compare, LaunchesThatDoNotCountAreInTheTable) {
  auto b = side("b", around(1));
  b[2].points[1].status = results::PointStatus::failed;
  b[2].points[1].reason = "a deadlock";
  const Compared of{{side("a", around(1)), b}};
  const std::vector<render::Row> rows = as_text(compare::points_table(*of, 0)).rows;
  EXPECT_EQ(rows[3].cells[3], "2 of 3");
  EXPECT_THAT(compare::curve_facts(*of, 0).back().second, HasSubstr("a deadlock"));
}

TEST(Compare, SidesAreNamedByFilesOrMachines) {
  std::vector<std::vector<results::RunData>> runs{side("a", around(1)), side("b", {1})};
  const auto names = [&](const std::vector<std::vector<std::string>>& files) {
    std::vector<std::vector<RunReport>> reports;
    for (std::size_t s = 0; s < files.size(); ++s) {
      auto& of_side = reports.emplace_back();
      for (std::size_t i = 0; i < files[s].size(); ++i) {
        of_side.push_back(make_report(runs[s][i], files[s][i], {}));
      }
    }
    return compare::default_names({reports.begin(), reports.end()});
  };
  EXPECT_THAT(names({{"old-1.h5", "old-2.h5"}, {"x/new.h5"}}), ElementsAre("old", "new"));
  EXPECT_THAT(names({{"old/r1.h5", "old/r2.h5"}, {"new/r.h5"}}), ElementsAre("old", "new"));
  EXPECT_THAT(names({{"a<b>.h5"}, {"c.h5"}}), IsEmpty()) << "letters";
  const Compared named{{side("a", around(1)), side("b", {1})}, {.names = {"x", "y"}}};
  EXPECT_EQ(named->sides[1].name, "y");
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
      runs.push_back(launch(name + "one" + std::to_string(runs.size()), 1, 4));
      add(runs.back(), {}, 0.080 * off);
      runs.push_back(launch(name + "two" + std::to_string(runs.size()), 1, 4));
      add(runs.back(), {.dp = 2}, 0.050 * off * factor);
    }
    return runs;
  };
  const Compared of{{apart("a", 1), apart("b", 1.1)}};
  ASSERT_EQ(of->differences.size(), 2U);
  const compare::Difference& at = of->differences[1];
  ASSERT_TRUE(at.efficiency && at.efficiency->lower);
  const double a = 0.8, b = 0.8 / 1.1;
  EXPECT_NEAR(at.efficiency->value, b - a, 1e-9);
  // Each efficiency: relative variance 2 * 0.01^2 / 3 with 4 degrees of freedom.
  const double relative = 2 * 0.01 * 0.01 / 3, va = a * a * relative, vb = b * b * relative;
  const double freedom = (va + vb) * (va + vb) / (va * va / 4 + vb * vb / 4);
  const double half = 2.31 * std::sqrt(va + vb);  // t for 7.9 degrees of freedom
  EXPECT_NEAR(freedom, 7.93, 0.05);
  EXPECT_NEAR((*at.efficiency->upper - *at.efficiency->lower) / 2, half, 0.01 * half);
}

TEST(Compare, CausesSumToTheDifferenceOfEfficiencies) {
  const Compared of{{traced_side("a", 0.050, 0.006, 0.002), traced_side("b", 0.056, 0.011, 0.003)}};
  ASSERT_EQ(of->differences.size(), 2U);
  const compare::Difference& at = of->differences[1];
  ASSERT_TRUE(at.efficiency);
  EXPECT_NEAR(at.efficiency->value, 0.080 / 0.056 / 2 - 0.080 / 0.050 / 2, 1e-9);
  double sum = 0;
  for (const compare::CausePart& part : at.why.efficiency) sum += part.value;
  EXPECT_NEAR(sum, -at.efficiency->value, 1e-12);
  ASSERT_FALSE(at.why.efficiency.empty());
  EXPECT_EQ(at.why.efficiency[0].cause, "dp transfer");
  EXPECT_NEAR(at.why.efficiency[0].value, 0.011 / 0.056 - 0.006 / 0.050, 1e-4);
  double seconds = 0;
  for (const compare::CausePart& part : at.why.step) seconds += part.value;
  EXPECT_NEAR(seconds, at.why.step_here - at.why.step_first, 1e-12);
  EXPECT_NEAR(seconds, 0.006, 1e-5);
  EXPECT_THAT(compare::efficiency_sentence(*of, at), HasSubstr("B's efficiency is 8.6 ± "));
  EXPECT_THAT(compare::efficiency_sentence(*of, at),
              HasSubstr("points lower at 2 ranks: 7.6 dp transfer"));
  EXPECT_THAT(compare::step_sentence(*of, at), HasSubstr("B's step is 12.0% longer at 2 ranks"));
}

TEST(Compare, TheStepOfADifferentBaselineIsExplained) {
  auto b = traced_side("b", 0.050, 0.006, 0);
  for (results::RunData& run : b) samples::slow_down(run.points[0], 1.2);
  const Compared of{{traced_side("a", 0.050, 0.006, 0), b}};
  const compare::Difference& at = of->differences[0];
  EXPECT_EQ(at.ranks, 1);
  EXPECT_THAT(compare::step_sentence(*of, at), HasSubstr("B's step is 20.0% longer at 1 rank"));
  EXPECT_THAT(compare::step_sentence(*of, at), HasSubstr("20.0% traced steps differ"));
  EXPECT_EQ(compare::efficiency_sentence(*of, at), "");
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
  std::vector<compare::CausePart> parts = compare::efficiency_causes(fine, coarse);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].cause, "GEMMs");
  EXPECT_NEAR(parts[0].value, 1 / 4.0 - 0.3 / 2, 1e-15);
  EXPECT_EQ(parts[1].cause, "communication");
  EXPECT_NEAR(parts[1].value, 1.2 / 4 - 0.5 / 2, 1e-15);
  EXPECT_NEAR(parts[2].value, 0.8 / 4 - 0.2 / 2, 1e-15);
}

TEST(Compare, CausesThatBothSidesTellApartStayApart) {
  const efficiency::Waterfall a{
      .ideal = 1, .measured = 2, .lost = {{"GEMMs", 0.4}, {"GEMM overlap", 0.6}}, .missing = {}};
  const efficiency::Waterfall b{
      .ideal = 1, .measured = 4, .lost = {{"GEMMs", 1}, {"GEMM overlap", 2}}, .missing = {}};
  const std::vector<compare::CausePart> parts = compare::efficiency_causes(a, b);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[1].cause, "GEMM overlap");
  EXPECT_NEAR(parts[1].value, 2 / 4.0 - 0.6 / 2, 1e-15);
}

TEST(Compare, SmallCausesAreSummed) {
  const auto parts = compare::above({{"a", 0.001}, {"b", -0.2}, {"c", 0.3}, {"d", 0.002}}, 0.005);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].cause, "c");
  EXPECT_EQ(parts[1].cause, "b");
  EXPECT_EQ(parts[2].cause, "other causes");
  EXPECT_NEAR(parts[2].value, 0.003, 1e-15);
}

TEST(Compare, WhatIsUntracedIsLastAndNoCause) {
  const auto parts = compare::above({{"untraced", 0.4}, {"a", 0.001}, {"b", 0.1}}, 0.005);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].cause, "b");
  EXPECT_EQ(parts[1].cause, "other causes");
  EXPECT_EQ(parts[2].cause, "untraced");
  auto b = traced_side("b", 0.056, 0.011, 0.003);
  for (results::RunData& run : b) samples::slow_down(run.points[1], 0.92);
  const Compared of{{traced_side("a", 0.050, 0.006, 0.002), b}};
  // 56.0 ms * 0.92 is 3% above 50 ms, and 4.5 ms less than what was traced.
  const std::string step = compare::step_sentence(*of, of->differences[1]);
  EXPECT_THAT(step, HasSubstr("-9.0% traced steps differ (more than the difference: the "
                              "causes are uncertain)"));
  const Compared plain{
      {traced_side("c", 0.050, 0.006, 0.002), traced_side("d", 0.056, 0.011, 0.003)}};
  EXPECT_THAT(compare::step_sentence(*plain, plain->differences[1]), Not(HasSubstr("uncertain")));
}

TEST(Compare, WhatIsNotEstablishedIsNotExplainedFlatly) {
  const auto says = [](const std::string& said) {
    EXPECT_THAT(said, StartsWith("as measured, not established: B's "));
    EXPECT_THAT(said, HasSubstr("; uncertain causes: "));
  };
  // 12% apart, and launches that differ by half.
  auto wide = traced_side("b", 0.056, 0.011, 0.003);
  for (std::size_t i = 0; i < wide.size(); ++i)
    samples::slow_down(wide[i].points[1], std::vector{1.0, 1.5, 0.7}[i]);
  const Compared noisy{{traced_side("a", 0.050, 0.006, 0.002), wide}};
  const compare::Difference& at = noisy->differences[1];
  EXPECT_EQ(at.verdict, compare::Verdict::no_difference);
  says(compare::step_sentence(*noisy, at));
  EXPECT_THAT(compare::efficiency_sentence(*noisy, at),
              StartsWith("no difference of B's efficiency"));
  EXPECT_THAT(compare::efficiency_sentence(*noisy, at), HasSubstr("; uncertain causes: "));
  auto few = traced_side("b", 0.056, 0.011, 0.003);
  few.pop_back();
  const Compared two{{traced_side("a", 0.050, 0.006, 0.002), few}};
  says(compare::step_sentence(*two, two->differences[1]));
  says(compare::efficiency_sentence(*two, two->differences[1]));
  EXPECT_THAT(compare::efficiency_sentence(*two, two->differences[1]),
              HasSubstr("in 3 launches of A and two launches of B"));
  EXPECT_THAT(compare::throughput_sentence(*two, two->differences[1]),
              HasSubstr("in 3 launches of A and two launches of B"));
}

TEST(Compare, AnIntervalThatDoesNotHoldItsValueSaysSo) {
  const statistics::Located off{.value = 0.02, .lower = -0.05, .upper = -0.01};
  EXPECT_FALSE(compare::is_established(off, 0));
  EXPECT_EQ(compare::points_interval(off), "-5.0 to -1.0 !");
  EXPECT_EQ(compare::change_interval({.value = 0.9, .lower = 0.95, .upper = 0.97}),
            "-5.0% to -3.0% !");
  EXPECT_TRUE(compare::is_established({.value = -0.02, .lower = -0.05, .upper = -0.01}, 0));
  const Compared of{{side("a", around(1)), side("b", around(1))}};
  compare::Difference at = of->differences[1];
  at.efficiency = off;
  EXPECT_THAT(compare::efficiency_sentence(*of, at),
              AllOf(HasSubstr("no difference"), HasSubstr("at 2 ranks: 2.0 points"),
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

TEST(Compare, ARunOnTwoSidesIsRefused) {
  EXPECT_THAT(refusal({side("a", around(1)), side("a", around(1))}),
              HasSubstr("comparing a run with itself claims nothing"));
}

TEST(Compare, WhatIsUnlikeIsNamedLineByLine) {
  using Runs = std::vector<results::RunData>;
  const auto each = [](void (*change)(results::PointData&)) {
    return [change](Runs& b) { b = changed(b, change); };
  };
  const std::vector<std::string> of_all{" in A (a1.h5, a2.h5, a3.h5)",
                                        " in B (b1.h5, b2.h5, b3.h5)"};
  struct Case {
    std::string what;
    std::function<void(Runs&)> change;
    std::vector<std::string> line{};
    std::optional<std::size_t> lines_if_none_else{};
  };
  const std::vector<Case> cases{
      {"model", each([](auto& at) { at.model = "small"; }), of_all},
      {"model layers", each([](auto& at) { at.model_shape["layers"] = "8"; }), of_all},
      {"dtype", each([](auto& at) { at.dtype = "bf16"; }), of_all},
      {"scaling", each([](auto& at) { at.scaling = "weak"; }), of_all},
      {"placement", each([](auto& at) { at.placement = "spread"; }), of_all},
      {"option overlap", each([](auto& at) { at.options["overlap"] = "off"; }), of_all},
      {"option bucket", each([](auto& at) { at.options["bucket"] = "1MiB"; }), of_all},
      {"mesh", each([](auto& at) { at.mesh = {.tp = at.ranks}; }), of_all},
      {"labels", each([](auto& at) { at.labels = {"oversubscribed"}; }), of_all},
      {"work", each([](auto& at) { at.throughput_unit = "samples/s"; }), {}, 3},
      {"executor",
       [](Runs& b) {
         for (auto& run : b) run.device = "cuda";
       },
       {},
       1},
      {"machine MPI", [](Runs& b) { b[0].mpi_library = "MPICH 4.2"; }, {}, 1},
      {"verification",
       [](Runs& b) {
         b[1].points[2].verified = false;
         b[1].points[2].verification = "layer3 is off by 0.3";
       },
       {"layer3 is off by 0.3 in B (b2.h5)", "4 ranks"},
       1},
  };
  for (const Case& at : cases) {
    SCOPED_TRACE(at.what);
    Runs b = side("b", around(1));
    at.change(b);
    const Compared of{{side("a", around(1)), b}};
    EXPECT_TRUE(of->refused && of->differences.empty());
    EXPECT_THAT(whats(*of), Contains(at.what));
    if (at.lines_if_none_else) {
      EXPECT_THAT(whats(*of), std::vector(*at.lines_if_none_else, at.what));
    }
    for (const auto& part : at.line) EXPECT_THAT(text_of(of->unlike.front()), HasSubstr(part));
    EXPECT_FALSE(of->machines.empty() && of->curves.empty());
  }
}

TEST(Compare, WhatAllCurvesDifferInIsSaidOnce) {
  auto a = side("a", around(1)), b = side("b", around(1));
  for (auto* const runs : {&a, &b}) {
    for (results::RunData& run : *runs) {
      for (const int tp : {1, 2, 4}) add(run, {.tp = tp}, 0.1 / tp).workload = "tp";
    }
  }
  b = changed(b, [](results::PointData& at) {
    at.dtype = "bf16";
    if (at.workload == "tp" && at.ranks > 1) at.labels = {"oversubscribed"};
  });
  const Compared of{{a, b}};
  ASSERT_EQ(of->curves.size(), 2U);
  EXPECT_EQ(of->unlike.size(), 4U) << "dtype of both, labels of 2 and 4 ranks";
  const std::vector<std::string> lines = compare::unlike_lines(*of);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0],
            "dtype: f32 in A (a1.h5, a2.h5, a3.h5), bf16 in B (b1.h5, b2.h5, b3.h5); all 2 curves");
  EXPECT_THAT(lines[1], StartsWith("labels: none in A"));
  EXPECT_THAT(lines[1], HasSubstr("; tp, "));
  EXPECT_THAT(lines[1], EndsWith(": 2, 4 ranks"));
}

TEST(Compare, SettingsAreNamed) {
  auto a = side("a", around(1)), b = side("b", around(1));
  for (results::RunData& run : a) run.config_toml = "fill = \"idle\"\n";
  for (results::RunData& run : b) run.config_toml = "fill = \"replicas\"\n";
  EXPECT_THAT(whats(*Compared{{a, b}}), ElementsAre("setting fill"));
}

TEST(Compare, OneLaunchThatIsInjectedIsFound) {
  auto b = side("b", around(1));
  b[2].points[1].labels = {"injected"};
  b[2].points[1].injections = {"slow-rank=1:1.2"};
  const Compared of{{side("a", around(1)), b}};
  EXPECT_TRUE(of->refused);
  EXPECT_THAT(whats(*of), ElementsAre("labels", "injected"));
  EXPECT_THAT(text_of(of->unlike[0]), HasSubstr("injected in B (b3.h5)"));
  const std::vector<std::string> lines = compare::unlike_lines(*of);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], HasSubstr("injected (slow-rank=1:1.2) in B (b3.h5)"));
}

TEST(Compare, DifferentInjectionsAreUnlike) {
  const auto injected = [](const std::string& what) {
    return [what](results::PointData& at) {
      at.labels = {"injected"};
      at.injections = {what};
    };
  };
  const Compared of{{changed(side("a", around(1)), injected("slow-rank=1:1.2")),
                     changed(side("b", around(1)), injected("slow-rank=1:1.5"))}};
  EXPECT_THAT(whats(*of), ElementsAre("injected", "injected", "injected"));
}

TEST(Compare, AnywayComparesAndMarksThePointsThatAreUnlike) {
  const auto to_bf16 = [](results::PointData& at) { at.dtype = "bf16"; };
  const Compared all{{side("a", around(1)), changed(side("b", around(1.1)), to_bf16)}, anyway()};
  EXPECT_FALSE(all->refused);
  EXPECT_EQ(all->differences.size(), 3U);
  EXPECT_THAT(compare::marks_of(*all, 0, 1, 4), ElementsAre("dtype"));
  EXPECT_THAT(compare::marks_of(*all, 0, 0, 4), ElementsAre("dtype"));
  auto meshes = side("b", around(1)), wrong = side("b", around(1.1));
  for (results::RunData& run : meshes) run.points[2].mesh = {.tp = 4};
  for (results::RunData& run : wrong) {
    run.points[2].verified = false;
    run.points[2].status = results::PointStatus::failed;
  }
  for (const auto& [b, mark] : {std::pair{meshes, "mesh"}, {wrong, "verification"}}) {
    const Compared of{{side("a", around(1)), b}, anyway()};
    EXPECT_FALSE(of->refused);
    EXPECT_EQ(of->differences.size(), 3U);
    EXPECT_THAT(compare::marks_of(*of, 0, 1, 4), ElementsAre(mark));
    EXPECT_THAT(compare::marks_of(*of, 0, 1, 2), IsEmpty());
  }
}

TEST(Compare, ARunThatDidNotEndIsNamed) {
  auto b = side("b", around(1));
  b[0].complete = false;
  const Compared of{{side("a", around(1)), b}};
  ASSERT_EQ(of->warnings.size(), 1U);
  EXPECT_THAT(of->warnings[0], HasSubstr("1 of 3 runs of B did not finish"));
}

TEST(Compare, LabelledAlikeIsCompared) {
  const auto crowd = [](results::PointData& at) {
    if (at.ranks == 4) at.labels = {"oversubscribed"};
  };
  const Compared of{{changed(side("a", around(1)), crowd), changed(side("b", around(1)), crowd)}};
  EXPECT_FALSE(of->refused);
  ASSERT_EQ(of->differences.size(), 3U);
  const PointReport* const four = compare::point_of(of->curves[0].sides[1]->curve, 4);
  ASSERT_NE(four, nullptr);
  EXPECT_THAT(four->labels, ElementsAre("oversubscribed"));
}

TEST(Compare, MachinesMayDiffer) {
  auto b = side("b", around(1));
  for (results::RunData& run : b) {
    run.mpi_library = "MPICH 4.2";
    run.environment = {{"UCX_TLS", "rc"}};
  }
  const Compared of{{side("a", around(1)), b}};
  EXPECT_FALSE(of->refused);
  ASSERT_EQ(of->machines.size(), 2U);
  EXPECT_EQ(of->machines[0].name, "MPI");
  EXPECT_THAT(of->machines[0].values, ElementsAre("Open MPI 4.1.4", "MPICH 4.2"));
  EXPECT_THAT(of->machines[1].values, ElementsAre("unset", "rc"));
}

TEST(Compare, WhatOnlyOneSideHasIsListed) {
  auto b = side("b", around(1));
  for (results::RunData& run : b) {
    run.points.pop_back();
    add(run, {.dp = 3}, 0.04);
  }
  const Compared of{{side("a", around(1)), b}};
  EXPECT_FALSE(of->refused);
  EXPECT_EQ(of->differences.size(), 2U);
  ASSERT_EQ(of->only.size(), 2U);
  EXPECT_THAT(compare::only_sentence(*of, of->only[0]),
              HasSubstr("4 ranks only in A: not measured on B"));
  EXPECT_THAT(compare::only_sentence(*of, of->only[1]), HasSubstr("3 ranks only in B"));
}

TEST(Compare, NothingInCommonIsRefused) {
  const auto to_tp = [](results::PointData& at) { at.workload = "tp"; };
  EXPECT_THAT(refusal({side("a", around(1)), changed(side("b", around(1)), to_tp)}),
              HasSubstr("A and B have no point in common"));
}

TEST(Compare, ExactCurvesArePairedBeforeNearOnes) {
  auto a = side("a", around(1)), b = side("b", around(1));
  for (results::RunData& run : a) add(run, {.tp = 4}, 0.04);
  for (results::RunData& run : b) run.points[2] = add(run, {.tp = 4}, 0.04);
  for (results::RunData& run : b) run.points.pop_back();
  const Compared of{{a, b}};
  EXPECT_FALSE(of->refused) << testing::PrintToString(whats(*of));
}

TEST(Compare, TheBaselineIsCommon) {
  auto b = side("b", around(1));
  for (results::RunData& run : b) run.points.erase(run.points.begin());
  const Compared of{{side("a", around(1)), b}};
  EXPECT_EQ(of->curves[0].baseline, 2);
  for (const auto& at : of->curves[0].sides)
    EXPECT_EQ(compare::point_of(at->curve, 2)->efficiency, 1);
  const Compared four{{side("a", around(1)), side("b", around(1))}, {.baseline = 4}};
  EXPECT_EQ(four->curves[0].baseline, 4);
  EXPECT_THAT(refusal({side("a", around(1)), side("b", around(1))}, {.baseline = 3}),
              HasSubstr("--baseline 3"));
  const Compared node{{side("a", around(1)), side("b", around(1))}, {.whole_node = true}};
  EXPECT_EQ(node->curves[0].baseline, 4);
}

TEST(Compare, ThreeSidesAreEachSetAgainstTheFirst) {
  const Compared of{{side("a", around(1)), side("b", around(1.1)), side("c", around(0.9))}};
  ASSERT_EQ(of->differences.size(), 6U);
  EXPECT_EQ(of->differences[3].side, 2U);
  EXPECT_EQ(of->differences[3].verdict, compare::Verdict::faster);
  EXPECT_THAT(compare::throughput_sentence(*of, of->differences[3]), HasSubstr("C's throughput"));
}

TEST(Compare, RatesOverWhatTheMachineHas) {
  auto a = side("a", around(1)), b = side("b", around(1));
  for (auto* const runs : {&a, &b}) {
    for (results::RunData& run : *runs) {
      run.calibration = results::CalibrationData{};
      run.calibration->ceilings = {{.dtype = "f32", .cache = "cold", .rate = 40e9}};
      run.calibration->curves = {{.op = "p2p",
                                  .link_class = "same node",
                                  .implementation = "library",
                                  .members = 2,
                                  .nodes = 1,
                                  .bandwidth = results::Fitted{.value = 8e9}}};
    }
  }
  const Compared of{{a, b}};
  const compare::SideCurve& first = *of->curves[0].sides[0];
  // 1.2 GFLOP in 30 ms on 4 ranks.
  ASSERT_TRUE(first.of_peak[2].value);
  EXPECT_NEAR(*first.of_peak[2].value, 1.2e9 / 4 / 0.030 / 40e9, 1e-3);
  EXPECT_THAT(first.of_peak[2].against, HasSubstr("best multiplication of the run"));
  EXPECT_NEAR(*first.per_link[2].value, 1024 / 0.030 / 8e9, 1e-8);
  EXPECT_THAT(first.per_link[2].against, HasSubstr("measured, same node, 8 GB/s"));
  EXPECT_THAT(first.per_link[0].missing, HasSubstr("one rank"));
  EXPECT_FALSE(first.per_watt[2].value);
  EXPECT_NE(first.per_watt[2].missing, "");
}

TEST(Compare, DatasheetsAreUsedWhereAllSidesHaveThem) {
  auto a = side("a", around(1)), b = side("b", around(1));
  const auto on = [](std::vector<results::RunData>& runs, const std::string& gpu) {
    runs = changed(runs, [](results::PointData& at) { at.dtype = "bf16"; });
    for (results::RunData& run : runs) {
      run.device = "cuda";
      for (auto& facts : run.rank_facts) facts.text["gpu_name"] = gpu;
      run.calibration = results::CalibrationData{};
      run.calibration->ceilings = {{.dtype = "bf16", .cache = "cold", .rate = 700e12}};
    }
  };
  on(a, "NVIDIA H200");
  on(b, "NVIDIA H100 80GB HBM3");
  const Compared both{{a, b}};
  EXPECT_THAT(both->curves[0].sides[0]->of_peak[1].against, HasSubstr("datasheet peak of H200"));
  EXPECT_NEAR(*both->curves[0].sides[0]->of_peak[1].value, 1.2e9 / 2 / 0.050 / 989e12, 1e-7);
  EXPECT_NEAR(*both->curves[0].sides[1]->per_link[1].value, 1024 / 0.050 / 450e9, 1e-9);
  on(b, "Some other GPU");
  const Compared one{{a, b}};
  EXPECT_THAT(one->curves[0].sides[0]->of_peak[1].against, HasSubstr("best multiplication"));
}

}  // namespace
}  // namespace isoscale::analysis
