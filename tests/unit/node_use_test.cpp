// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/records/point_facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/curves.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/render.hpp"
#include "launch_samples.hpp"

namespace isoscale::analysis {
namespace {

using mesh::Axis;
using mesh::Reach;
using nlohmann::json;
using samples::add;
using samples::JoinedLaunches;
using samples::launch;
using samples::launch_of;
using samples::measured;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr ReportOptions against_node{.baseline = std::nullopt, .whole_node = true};

TEST(NodeUse, CountsRanksOfNodesAndSaysHowFarAxesReach) {
  results::RunData run = launch("a", 2, 4);
  const auto use = node_use(run, add(run, {.tp = 4, .dp = 2}, 0.1));
  ASSERT_TRUE(use);
  EXPECT_EQ(use->nodes, 2);
  EXPECT_EQ(use->fewest, 4);
  EXPECT_EQ(use->most, 4);
  EXPECT_FALSE(use->fills_node) << "it fills two";
  EXPECT_THAT(use->axes,
              ElementsAre(Pair(Axis::tp, Reach::intra_node), Pair(Axis::dp, Reach::inter_node)));
}

TEST(NodeUse, FollowsTheRanksOfTheWorldThatAPointHas) {
  results::RunData run = launch("a", 2, 4);
  results::PointData& point = add(run, {.dp = 3}, 0.1);
  point.world_rank = {3, 4, 5};
  const auto use = node_use(run, point);
  EXPECT_EQ(use->nodes, 2);
  EXPECT_EQ(use->fewest, 1);
  EXPECT_EQ(use->most, 2);
}

TEST(NodeUse, APointFillsANodeWithAllRanksThatTheLaunchHasThere) {
  results::RunData run = launch("a", 2, 4);
  EXPECT_FALSE(node_use(run, add(run, {.dp = 2}, 0.1))->fills_node);
  EXPECT_TRUE(node_use(run, add(run, {.dp = 4}, 0.1))->fills_node);
  results::PointData& spread = add(run, {.dp = 4}, 0.1);
  spread.world_rank = {0, 1, 4, 5};
  EXPECT_FALSE(node_use(run, spread)->fills_node);
}

TEST(NodeUse, IsAbsentWhereARankIsNotKnownAndHasNoAxesWithoutAMesh) {
  results::RunData run = launch("a", 1, 2);
  EXPECT_FALSE(node_use(run, add(run, {.dp = 4}, 0.1)));
  results::PointData& skipped = add(run, {.dp = 2}, 0.1);
  skipped.mesh = {};
  EXPECT_THAT(node_use(run, skipped)->axes, IsEmpty());
}

TEST(WholeNode, IsTheBaselineAndSpeedUpCountsNodes) {
  results::RunData run = launch("a", 4, 4);
  for (const auto& [ranks, step] : {std::pair{1, 1.0}, {2, 0.5}, {4, 0.3}, {8, 0.2}, {16, 0.1}}) {
    add(run, {.dp = ranks}, step);
  }
  const Curve curve = make_report(run, "", against_node).curves.at(0);
  EXPECT_EQ(curve.baseline, 4);
  EXPECT_TRUE(curve.per_node);
  EXPECT_DOUBLE_EQ(*curve.points[2].speedup, 1.0);
  EXPECT_NEAR(*curve.points[3].speedup, 1.5, 1e-12);
  EXPECT_NEAR(*curve.points[3].efficiency, 0.75, 1e-12);
  EXPECT_NEAR(*curve.points[4].efficiency, 0.75, 1e-12);
  EXPECT_NEAR(*curve.points[1].efficiency, 0.3 / 0.5 * 2, 1e-12) << "half a node";
  EXPECT_NEAR(curve.points[3].speedup_interval->value, 1.5, 1e-12);
  EXPECT_THAT(render::baseline_remark(curve),
              ElementsAre(Pair("baseline", "1 node of 4 ranks: speed-up counts nodes")));
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
  const Curve curve = make_report(run, "", against_node).curves.at(0);
  EXPECT_FALSE(curve.baseline);
  EXPECT_FALSE(curve.points[1].efficiency);
}

TEST(NodeCells, ShowRanksOfNodesAndAxesOfSeveralNodesOnly) {
  results::RunData run = launch("a", 2, 4);
  add(run, {.tp = 4}, 0.2);
  add(run, {.tp = 4, .dp = 2}, 0.1);
  const Curve curve = make_report(run, "", {}).curves.at(0);
  EXPECT_TRUE(render::spans_nodes(curve));
  EXPECT_EQ(render::nodes_cell(curve.points[0]), "1 x 4");
  EXPECT_EQ(render::nodes_cell(curve.points[1]), "2 x 4");
  EXPECT_EQ(render::axes_text(curve.points[0]), "");
  EXPECT_EQ(render::axes_text(curve.points[1]), "tp intra-node, dp inter-node");
}

// Points of which too few steps count, in what is computed from them and in what is shown.

/// `count` steps that count, after two of warm-up.
void keep_steps(results::PointData& point, std::size_t count) {
  point.step_times.resize(count + 2);
  point.traced.resize(count + 2);
  point.dropped.resize(count + 2);
}

TEST(FewSteps, LabelPointsBelowSixThatCount) {
  const auto point_with = [](std::size_t count) {
    results::RunData run = samples::run();
    run.points = {measured(0, {}, 0.2)};
    keep_steps(run.points[0], count);
    return make_report(run, "", {}).curves.at(0).points.at(0);
  };
  EXPECT_THAT(point_with(5).labels, ElementsAre("few-steps"));
  EXPECT_EQ(point_with(5).steps, 5U);
  EXPECT_THAT(point_with(6).labels, ElementsAre());
}

TEST(FewSteps, LeaveTheLossUnexplained) {
  results::RunData run = samples::run();
  samples::add_dp_curve(run);
  const auto explains = [&] {
    const RunReport report = make_report(run, "", {});
    return report.curves.at(0).points.at(1).causes.waterfall.value().explains;
  };
  EXPECT_TRUE(explains());
  // Five untraced steps of the baseline are left beside its traced ones.
  std::vector<std::uint8_t>& dropped = run.points[0].dropped;
  std::fill(dropped.begin() + 6, dropped.begin() + 21, 1);
  EXPECT_FALSE(explains());
}

TEST(FewSteps, KeepTheBaselineWhereItIsAndMakeItUnsure) {
  results::RunData run = samples::run();
  run.points = {measured(0, {}, 6), measured(1, {.dp = 2}, 0.25), measured(2, {.dp = 4}, 0.125)};
  const auto curve = [&] { return make_report(run, "", {}).curves.at(0); };
  EXPECT_FALSE(has_unsure_baseline(curve()));
  keep_steps(run.points[0], 1);
  EXPECT_EQ(curve().baseline, 1);
  EXPECT_TRUE(has_unsure_baseline(curve()));
  EXPECT_FALSE(curve().points[2].speedup_interval) << "nothing is known of the baseline's";
  EXPECT_NEAR(*curve().points[2].efficiency, 12, 0.2);
  EXPECT_THAT(render::baseline_remark(curve()).at(0).second,
              HasSubstr("only 1 of its steps counts"));
}

TEST(FewSteps, OfALaunchDoNotCountBesideThoseOfEnough) {
  std::vector<results::RunData> runs{launch_of("a", 1, 2, 6.5), launch_of("b", 1, 2, 0.2)};
  keep_steps(runs[0].points[0], 1);
  const JoinedLaunches mixed{runs};
  ASSERT_EQ(mixed.joined.curves.size(), 1U);
  EXPECT_THAT(mixed.joined.curves[0].launches, ElementsAre(SizeIs(1)));
  EXPECT_FALSE(merge::spread_of(mixed.joined.curves[0].curve.points[0]));
  EXPECT_EQ(mixed.joined.curves[0].left_out.at(0).reason, "few-steps: 1 of the 6 that it takes");
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
  EXPECT_THAT(joined, HasSubstr("label    2 ranks: few-steps: 1 step counts"));
  EXPECT_THAT(joined, HasSubstr("vs 2 ranks"));
  const merge::Report alone{.runs = std::span{of.reports}.first(1)};
  for (const auto& render : {render::render_text, render::render_markdown}) {
    EXPECT_THAT(render(alone), HasSubstr("1 step"));
    EXPECT_THAT(render(alone), HasSubstr("2 ranks: few-steps: 1 step counts"));
  }
  EXPECT_EQ(json::parse(render::render_json(alone))["runs"][0]["points"][0]["labels"],
            json::array({"few-steps"}));
  EXPECT_EQ(json::parse(render::render_json(of.report()))["curves"][0]["points"][0]["labels"],
            json::array({"few-steps"}));
}

}  // namespace
}  // namespace isoscale::analysis
