// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/records/point_facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "analysis/render/cells.hpp"
#include "launch_samples.hpp"

namespace isoscale::analysis {
namespace {

using mesh::Axis;
using mesh::Reach;
using samples::add;
using samples::JoinedLaunches;
using samples::launch;
using samples::launch_of;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

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
  EXPECT_THAT(baseline_remark(curve),
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
  EXPECT_TRUE(spans_nodes(curve));
  EXPECT_EQ(nodes_cell(curve.points[0]), "1 x 4");
  EXPECT_EQ(nodes_cell(curve.points[1]), "2 x 4");
  EXPECT_EQ(axes_text(curve.points[0]), "");
  EXPECT_EQ(axes_text(curve.points[1]), "tp intra-node, dp inter-node");
}

}  // namespace
}  // namespace isoscale::analysis
