// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Reports tell how points use nodes, and which points have too few steps that count.
#include "analysis/curves.hpp"
#include "analysis/merge/join.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/render.hpp"
#include "analysis_test.hpp"
#include "launch_samples.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis {
namespace {

using mesh::Reach;
using samples::add;
using samples::JoinedLaunches;
using samples::launch;
using samples::launch_of;

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

TEST(WholeNode, IsNoneWhereNoPointFillsANode) {
  results::RunData run = launch("a", 2, 4);
  add(run, {.dp = 2}, 0.5);
  add(run, {.dp = 8}, 0.2);
  const Curve curve = curve_of(run, against_node);
  EXPECT_FALSE(curve.baseline);
  EXPECT_FALSE(curve.points[1].efficiency);
}

TEST(NodeCells, ShowRanksOfNodesAndAxesOfSeveralNodesOnly) {
  results::RunData run = launch("a", 2, 4);
  add(run, {.tp = 4}, 0.2);
  add(run, {.tp = 4, .dp = 2}, 0.1);
  const Curve curve = curve_of(run);
  EXPECT_TRUE(render::spans_nodes(curve));
  EXPECT_EQ(nodes_text(curve.points[0]), "1 x 4");
  EXPECT_EQ(nodes_text(curve.points[1]), "2 x 4");
  EXPECT_EQ(render::axes_text(curve.points[0]), "");
  EXPECT_EQ(render::axes_text(curve.points[1]), "tp intra-node, dp inter-node");
}

// Points of which too few steps count are marked, in what is computed from them and in what is
// shown.

/// `count` steps that count, after two of warm-up.
void keep_steps(results::PointData& point, std::size_t count) {
  point.step_times.resize(count + 2);
  point.traced.resize(count + 2);
  point.dropped.resize(count + 2);
}

TEST(FewSteps, LabelPointsBelowSixThatCount) {
  const auto point_with = [](std::size_t count) {
    results::RunData run = samples::dp_run({0.2});
    keep_steps(run.points[0], count);
    return point_of(run);
  };
  EXPECT_THAT(point_with(5).labels, ElementsAre("few-steps"));
  EXPECT_EQ(point_with(5).steps, 5U);
  EXPECT_THAT(point_with(6).labels, ElementsAre());
}

TEST(FewSteps, LeaveTheLossUnexplained) {
  results::RunData run = samples::run();
  samples::add_dp_curve(run);
  const auto explains = [&] { return curve_of(run).points.at(1).causes.waterfall->explains; };
  EXPECT_TRUE(explains());
  // Five untraced steps of the baseline are left beside its traced ones.
  std::vector<std::uint8_t>& dropped = run.points[0].dropped;
  std::fill(dropped.begin() + 6, dropped.begin() + 21, 1);
  EXPECT_FALSE(explains());
}

TEST(FewSteps, KeepTheBaselineWhereItIsAndMakeItUnsure) {
  results::RunData run = samples::dp_run({6, 0.25, 0.125});
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

TEST(FewSteps, AreSeenInTheTableAndSaidBelow) {
  std::vector<results::RunData> runs{launch_of("a", 1, 2, 6.5), launch_of("b", 2, 2, 0.2)};
  keep_steps(runs[0].points[0], 1);
  const JoinedLaunches of{std::move(runs)};
  const std::string joined = render::render_text(of.report());
  EXPECT_THAT(joined, HasSubstr(" s (1 step) "));
  EXPECT_THAT(joined, HasSubstr("label    2 ranks: few-steps"));
  EXPECT_THAT(joined, HasSubstr("vs 2 ranks"));
  const merge::Report alone{.runs = std::span{of.reports}.first(1)};
  for (const auto& render : {render::render_text, render::render_markdown}) {
    EXPECT_THAT(render(alone), HasSubstr("2 ranks: few-steps: 1 step"));
  }
  for (const json& part : {json::parse(render::render_json(alone))["runs"][0],
                           json::parse(render::render_json(of.report()))["curves"][0]}) {
    EXPECT_EQ(part["points"][0]["labels"], json::array({"few-steps"}));
  }
}

}  // namespace
}  // namespace isoscale::analysis
