// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "mesh/mesh.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace isoscale::mesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Every shape with extents 1 ... 3 on each of the five axes, and some large or lopsided ones.
std::vector<Shape> many_shapes() {
  std::vector<Shape> shapes{
      {.tp = 8, .dp = 128, .pp = 16}, {.dp = 1024}, {.tp = 7, .cp = 2, .ep = 5, .dp = 3, .pp = 11}};
  for (int code = 0; code < 243; ++code) {
    shapes.push_back({.tp = code % 3 + 1,
                      .cp = code / 3 % 3 + 1,
                      .ep = code / 9 % 3 + 1,
                      .dp = code / 27 % 3 + 1,
                      .pp = code / 81 % 3 + 1});
  }
  return shapes;
}

TEST(Mesh, TensorParallelVariesFastestAndPipelineSlowest) {
  const Shape shape{.tp = 2, .cp = 3, .ep = 5, .dp = 7, .pp = 11};
  EXPECT_EQ(shape.size(), 2310);
  EXPECT_EQ(stride(shape, Axis::tp), 1);
  EXPECT_EQ(stride(shape, Axis::cp), 2);
  EXPECT_EQ(stride(shape, Axis::ep), 6);
  EXPECT_EQ(stride(shape, Axis::dp), 30);
  EXPECT_EQ(stride(shape, Axis::pp), 210);
  EXPECT_EQ(rank_at(shape, {.tp = 1, .cp = 2, .ep = 4, .dp = 6, .pp = 10}), 2309);
  EXPECT_EQ(rank_at(shape, {.tp = 1, .cp = 1, .ep = 1, .dp = 1, .pp = 1}), 1 + 2 + 6 + 30 + 210);
}

TEST(Mesh, OfAxesThoseVaryWhoseExtentIsMoreThanOne) {
  const Shape shape{.tp = 2, .dp = 3};
  EXPECT_EQ(varying(shape, {Axis::dp, Axis::cp, Axis::ep}), AxisSet{Axis::dp});
  EXPECT_EQ(varying(shape, every_axis), (AxisSet{Axis::tp, Axis::dp}));
  EXPECT_EQ(varying(shape, {Axis::pp, Axis::cp}), AxisSet{});
  EXPECT_EQ(varying({}, every_axis), AxisSet{});
}

TEST(Mesh, CoordinatesOfARankAreItsMixedRadixDigits) {
  const Shape shape{.tp = 2, .dp = 2, .pp = 2};
  EXPECT_EQ(coordinates(shape, 0), (Coordinates{}));
  EXPECT_EQ(coordinates(shape, 1), (Coordinates{.tp = 1}));
  EXPECT_EQ(coordinates(shape, 2), (Coordinates{.dp = 1}));
  EXPECT_EQ(coordinates(shape, 5), (Coordinates{.tp = 1, .pp = 1}));
  EXPECT_EQ(coordinates(shape, 7), (Coordinates{.tp = 1, .dp = 1, .pp = 1}));
}

TEST(Mesh, RankAndCoordinatesAreInverse) {
  for (const Shape& shape : many_shapes()) {
    SCOPED_TRACE(to_string(shape));
    std::set<std::vector<int>> seen;
    for (int rank = 0; rank < shape.size(); ++rank) {
      const Coordinates at = coordinates(shape, rank);
      for (const Axis axis : all_axes) {
        ASSERT_GE(at[axis], 0);
        ASSERT_LT(at[axis], shape[axis]);
      }
      ASSERT_EQ(rank_at(shape, at), rank);
      seen.insert({at.tp, at.cp, at.ep, at.dp, at.pp});
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(shape.size()));
  }
}

TEST(Mesh, RefusesRanksAndCoordinatesOffTheMesh) {
  const Shape shape{.tp = 2, .dp = 3};
  EXPECT_THROW((void)coordinates(shape, -1), std::invalid_argument);
  EXPECT_THROW((void)coordinates(shape, 6), std::invalid_argument);
  EXPECT_THROW((void)rank_at(shape, {.tp = 2}), std::invalid_argument);
  EXPECT_THROW((void)rank_at(shape, {.dp = -1}), std::invalid_argument);
  try {
    (void)coordinates(shape, 6);
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 6"));
    EXPECT_THAT(error.what(), HasSubstr("dp=3,tp=2"));
  }
}

TEST(Mesh, NeighboursWrapAround) {
  const Shape shape{.tp = 2, .dp = 2, .pp = 4};
  EXPECT_EQ(neighbour(shape, 0, Axis::pp, 1), 4);
  EXPECT_EQ(neighbour(shape, 0, Axis::pp, -1), 12);
  EXPECT_EQ(neighbour(shape, 13, Axis::pp, 1), 1);
  EXPECT_EQ(neighbour(shape, 5, Axis::tp, 1), 4);
  EXPECT_EQ(neighbour(shape, 5, Axis::dp, 7), 7);
  EXPECT_EQ(neighbour(shape, 5, Axis::pp, 0), 5);
  EXPECT_EQ(neighbour(shape, 5, Axis::cp, 3), 5);  // an axis of one
  EXPECT_EQ(neighbour(shape, 0, Axis::pp, 2'147'483'647), 12);
  EXPECT_EQ(neighbour(shape, 0, Axis::pp, -2'147'483'647 - 1), 0);
}

TEST(Groups, MembersAreTheRanksThatDifferAlongTheAxes) {
  const Shape shape{.tp = 2, .dp = 2, .pp = 2};
  EXPECT_THAT(group_members(shape, 5, Axis::tp), ElementsAre(4, 5));
  EXPECT_THAT(group_members(shape, 5, Axis::dp), ElementsAre(5, 7));
  EXPECT_THAT(group_members(shape, 5, Axis::pp), ElementsAre(1, 5));
  EXPECT_THAT(group_members(shape, 5, {Axis::tp, Axis::pp}), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(group_members(shape, 5, AxisSet{}), ElementsAre(5));
  EXPECT_THAT(group_members(shape, 5, every_axis), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(Groups, PartitionTheRanksForEveryShapeAndSetOfAxes) {
  for (const Shape& shape : many_shapes()) {
    for (unsigned bits = 0; bits < 32; ++bits) {
      const AxisSet axes = AxisSet::from_bits(static_cast<std::uint8_t>(bits));
      if (shape.size() > 300 && bits % 5 != 0) continue;  // the large ones: a sample
      SCOPED_TRACE(to_string(shape) + " along " + to_string(axes));
      // By colour, the ranks in ascending order: what group_members must give for each of them.
      std::map<int, std::vector<int>> by_colour;
      for (int rank = 0; rank < shape.size(); ++rank) {
        by_colour[group_colour(shape, rank, axes)].push_back(rank);
      }
      const int size = group_size(shape, axes);
      ASSERT_EQ(static_cast<int>(by_colour.size()) * size, shape.size());
      ASSERT_EQ(by_colour.begin()->first, 0);
      ASSERT_EQ(by_colour.rbegin()->first, static_cast<int>(by_colour.size()) - 1);
      for (const auto& [colour, ranks] : by_colour) {
        ASSERT_EQ(group_members(shape, ranks.front(), axes), ranks);
        ASSERT_EQ(group_members(shape, ranks.back(), axes), ranks);
        for (int index = 0; index < size; ++index) {
          ASSERT_EQ(group_index(shape, ranks[static_cast<std::size_t>(index)], axes), index);
        }
      }
    }
  }
}

TEST(Groups, MembersShareAllOtherCoordinates) {
  const Shape shape{.tp = 2, .cp = 2, .ep = 3, .dp = 2, .pp = 2};
  for (int rank = 0; rank < shape.size(); ++rank) {
    for (const int member : group_members(shape, rank, {Axis::dp, Axis::ep})) {
      const Coordinates a = coordinates(shape, rank);
      const Coordinates b = coordinates(shape, member);
      EXPECT_EQ(a.tp, b.tp);
      EXPECT_EQ(a.cp, b.cp);
      EXPECT_EQ(a.pp, b.pp);
    }
  }
}

TEST(Names, AreWrittenAsUsersTypeThem) {
  EXPECT_EQ(name(Axis::tp), "tp");
  EXPECT_EQ(name(Axis::cp), "cp");
  EXPECT_EQ(name(Axis::ep), "ep");
  EXPECT_EQ(name(Axis::dp), "dp");
  EXPECT_EQ(name(Axis::pp), "pp");
  EXPECT_EQ(name(Placement::packed), "packed");
  EXPECT_EQ(name(Placement::spread), "spread");
  EXPECT_EQ(to_string(Shape{.tp = 2, .dp = 2}), "dp=2,tp=2");
  EXPECT_EQ(to_string(Shape{}), "1");
  EXPECT_EQ(to_string(AxisSet{Axis::dp}), "dp");
  EXPECT_EQ(to_string(AxisSet{Axis::tp, Axis::dp}), "dp+tp");
  EXPECT_EQ(to_string(every_axis), "world");
  EXPECT_EQ(to_string(AxisSet{}), "self");
}

TEST(Place, PackedFillsNodeAfterNodeInOrderOfAppearance) {
  const std::vector<int> nodes{9, 9, 3, 3, 9, 3, 5, 5};
  EXPECT_THAT(place(Placement::packed, nodes, 1), ElementsAre(0));
  EXPECT_THAT(place(Placement::packed, nodes, 4), ElementsAre(0, 1, 4, 2));
  EXPECT_THAT(place(Placement::packed, nodes, 8), ElementsAre(0, 1, 4, 2, 3, 5, 6, 7));
}

TEST(Place, SpreadTakesAsFewRanksFromEachNodeAsPossible) {
  const std::vector<int> nodes{0, 0, 0, 0, 1, 1, 1, 1};
  EXPECT_THAT(place(Placement::spread, nodes, 2), ElementsAre(0, 4));
  EXPECT_THAT(place(Placement::spread, nodes, 3), ElementsAre(0, 1, 4));
  EXPECT_THAT(place(Placement::spread, nodes, 4), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(place(Placement::spread, nodes, 8), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(Place, SpreadPassesOverFullNodesAndKeepsNodesTogether) {
  const std::vector<int> nodes{0, 1, 0, 2, 0, 0};  // node 0 has 4 ranks, the others 1
  EXPECT_THAT(place(Placement::spread, nodes, 3), ElementsAre(0, 1, 3));
  EXPECT_THAT(place(Placement::spread, nodes, 5), ElementsAre(0, 2, 4, 1, 3));
}

TEST(Place, SpreadIsAsEvenAsTheNodesAllow) {
  std::vector<int> nodes;
  for (const int ranks : {5, 2, 7, 1}) {
    const int node = nodes.empty() ? 0 : nodes.back() + 1;
    nodes.insert(nodes.end(), static_cast<std::size_t>(ranks), node);
  }
  const std::vector<int> capacity{5, 2, 7, 1};
  for (int count = 1; count <= 15; ++count) {
    std::vector<int> taken(4, 0);
    const auto chosen = place(Placement::spread, nodes, count);
    ASSERT_EQ(std::set<int>(chosen.begin(), chosen.end()).size(), static_cast<std::size_t>(count));
    for (const int rank : chosen)
      ++taken[static_cast<std::size_t>(nodes[static_cast<std::size_t>(rank)])];
    for (std::size_t a = 0; a < 4; ++a) {
      for (std::size_t b = 0; b < 4; ++b) {
        // A node holds two more than another only if the other has no rank left to give.
        const bool even = taken[a] <= taken[b] + 1;
        EXPECT_TRUE(even || taken[b] == capacity[b]) << "count " << count;
      }
    }
  }
}

TEST(Place, RefusesCountsThatTheWorldDoesNotHave) {
  const std::vector<int> nodes{0, 0};
  for (const int count : {-1, 0, 3}) {
    EXPECT_THROW((void)place(Placement::packed, nodes, count), std::invalid_argument);
    EXPECT_THROW((void)place(Placement::spread, nodes, count), std::invalid_argument);
  }
  EXPECT_THROW((void)place(Placement::packed, {}, 1), std::invalid_argument);
}

}  // namespace
}  // namespace isoscale::mesh
