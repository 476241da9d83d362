// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The places of groups and messages on nodes, and intervals of time.
#include <fmt/format.h>

#include <bitset>
#include <limits>

#include "matchers.hpp"
#include "simulate/layout.hpp"
#include "timeline/timeline.hpp"

namespace isoscale::simulate {
namespace {

/// From the lists of all members.
GroupPlace listed(const mesh::Shape& shape, const std::vector<int>& node, int rank,
                  mesh::AxisSet axes) {
  const auto nodes_of = [&](int of) {
    std::map<int, int> members;
    for (const int member : mesh::group_members(shape, of, axes)) ++members[node.at(member)];
    return members;
  };
  const std::map<int, int> mine = nodes_of(rank);
  GroupPlace place{.members = mesh::group_size(shape, axes),
                   .nodes = static_cast<int>(mine.size()),
                   .node_members = 0,
                   .sharing = 0,
                   .reach = mine.rbegin()->first - mine.begin()->first + 1};
  for (const auto& [on, members] : mine) {
    place.node_members = std::max(place.node_members, members);
    std::set<std::vector<int>> groups;
    for (int other = 0; other < shape.size(); ++other) {
      if (node.at(other) != on || (nodes_of(other).size() > 1) != (mine.size() > 1)) continue;
      groups.insert(mesh::group_members(shape, other, axes));
    }
    place.sharing = std::max(place.sharing, static_cast<int>(groups.size()));
  }
  return place;
}

GroupPlace listed_message(const mesh::Shape& shape, const std::vector<int>& node, int rank,
                          mesh::Axis axis, int offset) {
  const auto to = [&](int from) { return mesh::neighbour(shape, from, axis, offset); };
  if (to(rank) == rank) return {};
  const int from_node = node.at(rank), to_node = node.at(to(rank));
  int staying = 0, leaving = 0, entering = 0;
  for (int other = 0; other < shape.size(); ++other) {
    const bool stays = node.at(other) == node.at(to(other));
    if (node.at(other) == from_node) ++(stays ? staying : leaving);
    if (node.at(to(other)) == to_node && !stays) ++entering;
  }
  if (from_node == to_node)
    return {.members = 2, .nodes = 1, .node_members = 2, .sharing = staying, .reach = 1};
  return {.members = 2,
          .nodes = 2,
          .node_members = 1,
          .sharing = std::max(leaving, entering),
          .reach = std::abs(to_node - from_node) + 1};
}

void expect_as_listed(const mesh::Shape& shape, const Layout& layout, const std::string& what) {
  const auto ranks = std::views::iota(0, shape.size());
  for (std::uint8_t bits = 0; bits <= mesh::every_axis.bits(); ++bits) {
    const mesh::AxisSet axes = mesh::AxisSet::from_bits(bits);
    SCOPED_TRACE(what + " " + mesh::to_string(axes));
    EXPECT_EQ(places_of(shape, layout, axes), mapped(ranks, [&](int rank) {
                return listed(shape, layout.node_of_rank, rank, axes);
              }));
  }
  for (const mesh::Axis axis : mesh::all_axes) {
    for (const int offset : {1, -1, 2}) {
      SCOPED_TRACE(fmt::format("{} {} {}", what, mesh::name(axis), offset));
      EXPECT_EQ(places_of_messages(shape, layout, axis, offset), mapped(ranks, [&](int rank) {
                  return listed_message(shape, layout.node_of_rank, rank, axis, offset);
                }));
    }
  }
}

TEST(Layout, PlacesArePackedOrScatteredThoseOfTheListedMembers) {
  std::mt19937 random{7};
  for (const mesh::Shape& shape : {mesh::Shape{.tp = 2, .dp = 4, .pp = 2},
                                   {.tp = 4, .cp = 2, .dp = 3},
                                   {.dp = 12},
                                   {.tp = 3, .dp = 2, .pp = 2},
                                   {.ep = 2, .dp = 4, .pp = 2},
                                   {.tp = 8, .dp = 2}}) {
    for (const int node_ranks : {1, 2, 3, 4, 5, 6, 8, 16, 100}) {
      expect_as_listed(shape, packed(shape.size(), node_ranks),
                       mesh::to_string(shape) + " on nodes of " + std::to_string(node_ranks));
    }
    Layout scattered = packed(shape.size(), 1);
    for (int& node : scattered.node_of_rank) node = static_cast<int>(random() % 4);
    expect_as_listed(shape, scattered, mesh::to_string(shape) + " scattered");
  }
}

// DGX nodes: tp fills a node, a dp group has one member on each of its nodes and shares them with
// seven others, a pipeline's messages leave eight at a time.
TEST(Layout, KnowsLargeMachines) {
  const mesh::Shape shape{.tp = 8, .dp = 128, .pp = 16};
  const Layout layout = packed(shape.size(), 8);
  EXPECT_EQ(places_of(shape, layout, mesh::Axis::tp).at(9000),
            (GroupPlace{.members = 8, .nodes = 1, .node_members = 8, .sharing = 1, .reach = 1}));
  EXPECT_EQ(
      places_of(shape, layout, mesh::Axis::dp).at(9000),
      (GroupPlace{.members = 128, .nodes = 128, .node_members = 1, .sharing = 8, .reach = 128}));
  EXPECT_EQ(places_of_messages(shape, layout, mesh::Axis::pp, 1).at(9000),
            (GroupPlace{.members = 2, .nodes = 2, .node_members = 1, .sharing = 8, .reach = 129}));
}

TEST(Layout, RefusesWhatIsNone) {
  EXPECT_THROW((void)packed(8, 0), std::invalid_argument);
  EXPECT_THROW((void)packed(0, 8), std::invalid_argument);
  for (const Layout& wrong : {packed(4, 2), Layout{{0, 0, 0, 0, 1, 1, 1, -1}},
                              Layout{{0, 0, 0, 0, 1, 1, 1, std::numeric_limits<int>::max()}}}) {
    EXPECT_THROW((void)places_of({.dp = 8}, wrong, mesh::Axis::dp), std::invalid_argument);
    EXPECT_THROW((void)places_of_messages({.dp = 8}, wrong, mesh::Axis::dp, 1),
                 std::invalid_argument);
  }
}

}  // namespace
}  // namespace isoscale::simulate

namespace isoscale::timeline {
namespace {

TEST(Total, AddsLengths) {
  const auto at = [](int begin, int end) {
    return Interval{.begin = units::Nanoseconds{begin}, .end = units::Nanoseconds{end}};
  };
  EXPECT_EQ(total({at(1, 4), at(10, 20)}).value(), 13);
  EXPECT_EQ(total({}).value(), 0);
}

/// Every operation against a plain array of flags, one per nanosecond, from no intervals to some
/// that overlap, touch, lie inside others, are empty or end before they begin.
TEST(Intervals, AgreeWithFlagsPerNanosecond) {
  const auto flags_of = [](const IntervalSet& set) {
    std::bitset<120> flags;
    for (const Interval& interval : set) {
      for (auto t = interval.begin.value(); t < interval.end.value(); ++t) {
        flags.set(static_cast<std::size_t>(t));
      }
    }
    return flags;
  };
  const auto is_canonical = [](const IntervalSet& set) {
    const auto is_full = [](const Interval& at) { return at.begin < at.end; };
    const auto touches = [](const Interval& at, const Interval& next) {
      return at.end >= next.begin;
    };
    return std::ranges::all_of(set, is_full) &&
           std::ranges::adjacent_find(set, touches) == set.end();
  };
  std::mt19937 engine{20240917};
  const auto draw = [&engine](unsigned below) { return static_cast<int>(engine() % below); };
  const auto drawn_intervals = [&] {
    std::vector<Interval> intervals;
    for (int i = draw(12); i > 0; --i) {
      const int begin = draw(100);
      intervals.push_back(
          {.begin = units::Nanoseconds{begin}, .end = units::Nanoseconds{begin - 2 + draw(22)}});
    }
    return intervals;
  };
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE(round);
    const std::vector<Interval> one = drawn_intervals(), other = drawn_intervals();
    const auto a = flags_of(one), b = flags_of(other);
    const IntervalSet x = normalise(one), y = normalise(other);
    for (const auto& [set, flags] :
         {std::pair{x, a}, {intersect(x, y), a & b}, {subtract(x, y), a & ~b}}) {
      ASSERT_TRUE(is_canonical(set));
      ASSERT_EQ(flags_of(set), flags);
    }
  }
}

}  // namespace
}  // namespace isoscale::timeline
