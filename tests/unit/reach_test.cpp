// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "mesh/mesh.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace isoscale::mesh {
namespace {

TEST(Reach, TellsAxesInsideNodesFromThoseAcross) {
  const Shape shape{.tp = 2, .dp = 2, .pp = 2};
  const std::vector<int> two_nodes{0, 0, 0, 0, 1, 1, 1, 1};
  EXPECT_EQ(reach(shape, Axis::tp, two_nodes), Reach::intra_node);
  EXPECT_EQ(reach(shape, Axis::dp, two_nodes), Reach::intra_node);
  EXPECT_EQ(reach(shape, Axis::pp, two_nodes), Reach::inter_node);
  EXPECT_EQ(reach(shape, Axis::cp, two_nodes), Reach::alone);
  EXPECT_EQ(reach_text(shape, two_nodes), "tp intra-node, dp intra-node, pp inter-node");
}

TEST(Reach, IsMixedWhereSomeGroupsCross) {
  const Shape shape{.tp = 2, .dp = 2};
  EXPECT_EQ(reach(shape, Axis::tp, std::vector<int>{0, 0, 1, 2}), Reach::mixed);
  EXPECT_EQ(reach(shape, Axis::dp, std::vector<int>{0, 0, 1, 2}), Reach::inter_node);
}

TEST(Reach, SaysNothingOfOneRankAndRefusesMissingNodes) {
  EXPECT_EQ(reach_text(Shape{}, std::vector<int>{0}), "");
  EXPECT_THROW((void)reach(Shape{.dp = 2}, Axis::dp, std::vector<int>{0}), std::invalid_argument);
}

}  // namespace
}  // namespace isoscale::mesh
