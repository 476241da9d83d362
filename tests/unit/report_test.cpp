// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "analysis/compare/compare_render.hpp"
#include "analysis/curves_and_baselines.hpp"
#include "analysis/render/table_cells.hpp"
#include "analysis_test.hpp"
#include "compare_samples.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis {
namespace {

using mesh::Reach;

TEST(Report, AStepWithAnUnknownTimeIsLeftOut) {
  results::RunData run = samples::run({measured(0, {.dp = 2}, 0.4)});
  run.points[0].step_times[5][0] = std::numeric_limits<double>::quiet_NaN();
  run.points[0].step_times[6].clear();
  EXPECT_EQ(point_of(run).step_time->samples, 18U);
}

TEST(Report, FlagsAreThoseOfUntracedSteps) {
  results::RunData run = dp_run({0.2});
  add_traced_steps(run.points[0], 0.2, 5);
  EXPECT_TRUE(point_of(run).flags.sentences.empty());
  run.points[0].step_times[10] = {0.9};
  const PointReport point = point_of(run);
  ASSERT_TRUE(point.flags.outliers);
  EXPECT_NEAR(point.flags.outliers->furthest, 4.5, 0.05);
}

TEST(Report, ABaselineOfSeveralRanksCountsAsThatManyTimesOne) {
  const results::RunData run = dp_run({0.4, 0.2, 0.2}, 2);
  const Curve first = curve_of(run);
  EXPECT_EQ(first.baseline, 2);
  EXPECT_EQ(baseline_name(first), "2 ranks");
  EXPECT_DOUBLE_EQ(*first.points[0].speedup, 2.0);
  EXPECT_NEAR(*first.points[1].speedup, 4.0, 1e-12);
  EXPECT_NEAR(*first.points[2].efficiency, 0.5, 1e-12);

  const Curve chosen = curve_of(run, {.baseline = 8});
  EXPECT_EQ(chosen.baseline, 8);
  EXPECT_DOUBLE_EQ(*chosen.points[2].efficiency, 1.0);
  EXPECT_NEAR(*chosen.points[0].efficiency, 2.0, 1e-12);

  const Curve none = curve_of(run, {.baseline = 16});
  EXPECT_FALSE(none.baseline);
  EXPECT_EQ(baseline_name(none), "");
  EXPECT_FALSE(none.points[0].efficiency);
  EXPECT_TRUE(none.points[0].throughput);
  EXPECT_EQ(baseline_name(curve_of(dp_run({0.4}))), "1 rank");
}

TEST(Report, FailedAndWrongPointsAreNoBaselineAndHaveNoThroughput) {
  results::RunData run = dp_run({0.4, 0.2, 0.1, 0.1});
  run.points[0].status = results::PointStatus::failed;
  run.points[1].verified = false;
  const Curve curve = curve_of(run);
  EXPECT_EQ(curve.baseline, 4);
  EXPECT_FALSE(curve.points[0].throughput);
  EXPECT_FALSE(curve.points[1].throughput);
  EXPECT_FALSE(curve.points[1].efficiency);
  EXPECT_NEAR(*curve.points[3].efficiency, 0.5, 1e-12);
}

TEST(Report, RanksThatShareCoresOrAGpuAreTheBaselineOnlyAmongThemselves) {
  results::RunData run = dp_run({0.4, 0.2, 0.1});
  const auto baseline = [&](const ReportOptions& options) {
    return curve_of(run, options).baseline;
  };
  run.points[0].labels = {"oversubscribed"};
  EXPECT_EQ(baseline({}), 2);
  run.points[1].labels = {"shared-gpu"};
  EXPECT_EQ(baseline({}), 4);
  EXPECT_EQ(baseline({.baseline = 1}), 1) << "as it was asked for";
  run.points[2].labels = {"oversubscribed", "injected"};
  EXPECT_EQ(baseline({}), 1) << "all of them are labelled";
  for (results::PointData& point : run.points) point.labels = {"injected"};
  EXPECT_EQ(baseline({}), 1);
}

TEST(Report, TellsSamplesAndMemoryApart) {
  results::RunData run = samples::run({measured(0, {.dp = 2}, 0.5)});
  EXPECT_FALSE(point_of(run).host_memory_per_rank);
  results::PointData& point = run.points[0];
  point.memory_of_rank = {70, 90};
  point.host_memory_of_rank = {0, 40};
  point.model_shape["sequence"] = "32";  // 16 samples of 32 tokens, counted twice
  const PointReport report = point_of(run);
  EXPECT_NEAR(*report.samples_per_second, 16 / report.step_time->median, 1e-9);
  EXPECT_DOUBLE_EQ(report.work_growth, 2);
  EXPECT_EQ(report.memory_per_rank, 90);
  EXPECT_EQ(report.device_memory_per_rank, 70);
  EXPECT_EQ(report.host_memory_per_rank, 40);
  EXPECT_EQ(json_of(run)["points"][0]["work_growth"], 2);
}

/// A launch on whose 2 and 4 ranks the model is 2 and 4 times as large: 16 samples of 64 tokens.
results::RunData growing(const std::string& id) {
  results::RunData run = launch(id, 1, 4);
  for (const int ranks : {1, 2, 4}) {
    results::PointData& point = add(run, {.dp = ranks}, 0.08);
    point.scaling = "weak";
    point.model_shape["sequence"] = "64";
    point.work_per_step = 1024.0 * ranks;
  }
  return run;
}

TEST(Report, NamesScaledTokensAndTheirFactorEverywhere) {
  const JoinedLaunches of{{growing("a"), growing("b")}};
  const json report = json::parse(render::render_json(of.report()));
  const Compared of_sides{{{growing("a")}, {growing("b")}}};
  const json compared = json::parse(compare::render_json(*of_sides));
  const json& points = report["runs"][0]["points"];
  for (const json* const at :
       {&points[2], &report["curves"][0]["points"][2], &report["index"][0]["experiments"][0],
        &compared["curves"][0]["sides"][1]["points"][2]}) {
    expect_holds(*at, {{"throughput", {{"unit", "scaled tokens/s"}}}, {"work_growth", 4}});
  }
  EXPECT_EQ(points[0]["throughput"]["unit"], "scaled tokens/s") << "a curve has one unit";
  EXPECT_EQ(report["machines"][0]["throughput_over_time"][0]["unit"], "scaled tokens/s");
  const render::IndexReport index{.index = of.report().index};
  EXPECT_THAT(render::render_index_text(index), HasSubstr("scaled tokens/s"));
  results::RunData same = growing("c");
  for (results::PointData& point : same.points) point.work_per_step = 1024;
  EXPECT_EQ(json_of(same)["points"][2]["throughput"]["unit"], "tokens/s");
}

TEST(Report, ASerialFractionIsAShareOfAStepOrNotShown) {
  const auto fraction = [](double of_two) {
    return curve_of(dp_run({0.4, of_two})).points.at(1).causes.serial_fraction;
  };
  ASSERT_TRUE(fraction(0.3));
  EXPECT_NEAR(fraction(0.3)->value, 0.5, 0.02);
  EXPECT_FALSE(fraction(1.2)) << "slower than the baseline";
  EXPECT_FALSE(fraction(0.1)) << "faster than ideal";
}

TEST(Curves, AscendAndKeepWorkloadsApart) {
  results::RunData run = samples::run({measured(0, {.dp = 4}, 1), measured(1, {}, 1),
                                       measured(2, {.pp = 2}, 1), measured(3, {.dp = 2}, 1)});
  run.points[2].workload = "pp";
  const RunReport report = make_report(run, "", {});
  const std::string settings = ", f32, strong scaling, packed";
  EXPECT_THAT(mapped(report.curves, &Curve::title),
              ElementsAre("dp, tiny" + settings, "pp, tiny" + settings));
  EXPECT_THAT(rank_counts(report.curves[0]), ElementsAre(1, 2, 4));
}

TEST(Curves, JoinPointsWhoseOptionsScalingChanged) {
  results::RunData run = dp_run({1, 1});
  run.points[0].options = {{"batch", "16"}, {"microbatch", "2"}, {"microbatches", "8"}};
  run.points[1].options = {{"batch", "16"}, {"microbatch", "2"}, {"microbatches", "4"}};
  EXPECT_EQ(make_report(run, "", {}).curves.size(), 1U);
  for (auto& point : run.points) point.scaling = "weak";
  EXPECT_EQ(make_report(run, "", {}).curves.size(), 2U);
  run.points[1].options = {{"batch", "32"}, {"microbatch", "2"}, {"microbatches", "8"}};
  EXPECT_EQ(make_report(run, "", {}).curves.size(), 1U);
}

TEST(Curves, TakePointsThatWereSkippedBeforeTheirBatchWasKnown) {
  results::RunData run = samples::run({measured(0, {}, 1), measured(1, {.dp = 2}, 1),
                                       measured(2, {}, 1), measured(3, {.dp = 4}, 1)});
  run.points[2].ranks = 3;
  run.points[2].status = results::PointStatus::skipped;
  run.points[2].options = {{"microbatch", "4"}, {"overlap", "on"}};
  EXPECT_THAT(rank_counts(curve_of(run)), ElementsAre(1, 2, 3, 4));
  run.points[2].options["overlap"] = "off";
  EXPECT_EQ(make_report(run, "", {}).curves.size(), 2U);
}

/// A traced step of 1000 ns in which `overlap` ns are claimed twice.
results::RunData contradicting(int overlap, const std::string& device) {
  results::RunData run = samples::run();
  run.device = device;
  run.points = {measured(0, {}, 1)};
  set_trace(run.points[0],
            samples::point({}, {Script{}.compute().compute()},
                           {{samples::trace(0, {0, 1000}, {{0, 500 + overlap}, {500, 1000}})}}));
  return run;
}

TEST(Labels, NotClosedAboveOnePercentOfTheStepAndThreeOnTheHost) {
  for (const auto& [overlap, device, closed] : {std::tuple{9, "cuda", true},
                                                {11, "cuda", false},
                                                {29, "host", true},
                                                {31, "host", false}}) {
    const PointReport point = point_of(contradicting(overlap, device));
    EXPECT_EQ(results::has_label(point.labels, "not-closed"), !closed) << overlap << device;
  }
  results::RunData run = contradicting(500, "cuda");
  run.points[0].labels = {"oversubscribed"};
  EXPECT_THAT(point_of(run).labels, ElementsAre("oversubscribed", "not-closed"));
}

constexpr ReportOptions against_node{.baseline = std::nullopt, .whole_node = true};

TEST(NodeUse, CountsRanksOfNodesAndSaysHowFarAxesReach) {
  results::RunData run = launch("a", 2, 4);
  const auto use = node_use(run, add(run, {.tp = 4, .dp = 2}, 0.1));
  EXPECT_THAT((std::array{use.value().nodes, use->fewest, use->most}), ElementsAre(2, 4, 4));
  EXPECT_FALSE(use->fills_node) << "it fills two";
  EXPECT_THAT(use->axes,
              ElementsAre(Pair(Axis::tp, Reach::intra_node), Pair(Axis::dp, Reach::inter_node)));
  // The ranks are those of the world that the point has.
  results::PointData& apart = add(run, {.dp = 3}, 0.1);
  apart.world_rank = {3, 4, 5};
  const auto of_apart = node_use(run, apart);
  EXPECT_THAT((std::array{of_apart->nodes, of_apart->fewest, of_apart->most}),
              ElementsAre(2, 1, 2));
  apart.mesh = {};
  EXPECT_THAT(node_use(run, apart)->axes, IsEmpty());
  EXPECT_FALSE(node_use(run, add(run, {.dp = 16}, 0.1))) << "ranks that are not known";
}

TEST(NodeUse, APointFillsANodeWithAllRanksThatTheLaunchHasThere) {
  results::RunData run = launch("a", 2, 4);
  EXPECT_FALSE(node_use(run, add(run, {.dp = 2}, 0.1))->fills_node);
  EXPECT_TRUE(node_use(run, add(run, {.dp = 4}, 0.1))->fills_node);
  run.points.back().world_rank = {0, 1, 4, 5};
  EXPECT_FALSE(node_use(run, run.points.back())->fills_node);
}

TEST(WholeNode, IsTheBaselineAndSpeedUpCountsNodes) {
  results::RunData run = launch("a", 4, 4);
  for (const auto& [ranks, step] : {std::pair{1, 1.0}, {2, 0.5}, {4, 0.3}, {8, 0.2}, {16, 0.1}}) {
    add(run, {.dp = ranks}, step);
  }
  const Curve curve = curve_of(run, against_node);
  EXPECT_EQ(curve.baseline, 4);
  EXPECT_TRUE(curve.per_node);
  EXPECT_DOUBLE_EQ(*curve.points[2].speedup, 1.0);
  EXPECT_NEAR(*curve.points[3].speedup, 1.5, 1e-12);
  EXPECT_NEAR(*curve.points[3].efficiency, 0.75, 1e-12);
  EXPECT_NEAR(*curve.points[4].efficiency, 0.75, 1e-12);
  EXPECT_NEAR(*curve.points[1].efficiency, 0.3 / 0.5 * 2, 1e-12) << "half a node";
  EXPECT_NEAR(curve.points[3].speedup_interval->value, 1.5, 1e-12);
  EXPECT_THAT(render::baseline_remark(curve),
              ElementsAre(Pair("baseline", HasSubstr("1 node of 4 ranks"))));
}

TEST(WholeNode, MayBeInAnotherFileAndIsTheFullestOfAllLaunches) {
  // The launch of one rank has all of its ranks on its node, but others have more there.
  const JoinedLaunches of{
      {launch_of("a", 1, 1, 1.0), launch_of("b", 1, 4, 0.3), launch_of("c", 2, 4, 0.2)},
      against_node};
  const Curve& curve = of.joined.curves.at(0).curve;
  EXPECT_EQ(curve.baseline, 4);
  EXPECT_NEAR(*curve.points.at(2).speedup, 1.5, 1e-12);
}

/// `count` steps that count, after two of warm-up.
void keep_steps(results::PointData& point, std::size_t count) {
  point.step_times.resize(count + 2);
  point.traced.resize(count + 2);
  point.dropped.resize(count + 2);
}

TEST(FewSteps, LabelPointsBelowSixThatCount) {
  const auto point_with = [](std::size_t count) {
    results::RunData run = dp_run({0.2});
    keep_steps(run.points[0], count);
    return point_of(run);
  };
  EXPECT_THAT(point_with(5).labels, ElementsAre("few-steps"));
  EXPECT_EQ(point_with(5).steps, 5U);
  EXPECT_THAT(point_with(6).labels, ElementsAre());
}

TEST(FewSteps, LeaveTheLossUnexplained) {
  results::RunData run = dp_curve();
  const auto explains = [&] { return curve_of(run).points.at(1).causes.waterfall->explains; };
  EXPECT_TRUE(explains());
  // Five untraced steps of the baseline are left beside its traced ones.
  std::vector<std::uint8_t>& dropped = run.points[0].dropped;
  std::fill(dropped.begin() + 6, dropped.begin() + 21, 1);
  EXPECT_FALSE(explains());
}

TEST(FewSteps, KeepTheBaselineWhereItIsAndMakeItUnsure) {
  results::RunData run = dp_run({6, 0.25, 0.125});
  const auto curve = [&] { return curve_of(run); };
  EXPECT_FALSE(has_unsure_baseline(curve()));
  keep_steps(run.points[0], 1);
  EXPECT_EQ(curve().baseline, 1);
  EXPECT_TRUE(has_unsure_baseline(curve()));
  EXPECT_FALSE(curve().points[2].speedup_interval) << "nothing is known of the baseline's";
  EXPECT_NEAR(*curve().points[2].efficiency, 12, 0.2);
  EXPECT_THAT(render::baseline_remark(curve()).at(0).second, HasSubstr("only 1 of"));
}

TEST(FewSteps, OfALaunchDoNotCountBesideThoseOfEnough) {
  std::vector<results::RunData> runs{launch_of("a", 1, 2, 6.5), launch_of("b", 1, 2, 0.2)};
  keep_steps(runs[0].points[0], 1);
  const JoinedLaunches mixed{runs};
  ASSERT_EQ(mixed.joined.curves.size(), 1U);
  EXPECT_THAT(mixed.joined.curves[0].launches, ElementsAre(SizeIs(1)));
  EXPECT_FALSE(merge::spread_of(mixed.joined.curves[0].curve.points[0]));
  EXPECT_THAT(mixed.joined.curves[0].left_out.at(0).reason, HasSubstr("1 of the 6"));
  keep_steps(runs[1].points[0], 1);
  const JoinedLaunches few{runs};
  EXPECT_THAT(few.joined.curves.at(0).launches, ElementsAre(SizeIs(2)));
  EXPECT_EQ(few.joined.curves[0].curve.points[0].steps, 2U);
  EXPECT_THAT(few.joined.curves[0].curve.points[0].labels, ElementsAre("few-steps"));
}

}  // namespace
}  // namespace isoscale::analysis
