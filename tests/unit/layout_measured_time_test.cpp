// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The places of groups and messages on nodes, times of ops from what was measured, and intervals.
#include <bitset>

#include "matchers.hpp"
#include "simulate/layout.hpp"
#include "simulate/op_time.hpp"
#include "timeline/timeline.hpp"

namespace isoscale::simulate {
namespace {

using program::DType;
using program::OpKind;

constexpr double us = 1e-6, mib = 1 << 20;

TimedGemm cube(std::uint32_t extent, double rate) {
  const program::GemmShape shape{.m = extent, .n = extent, .k = extent, .batch = 1};
  return {.type = DType::f32, .shape = shape, .seconds = flop_of(shape) / rate};
}

std::optional<double> seconds_of_cube(const Measured& measured, std::uint32_t extent,
                                      DType type = DType::f32) {
  return measured_gemm_seconds(measured, {.m = extent, .n = extent, .k = extent}, type);
}

TEST(MeasuredGemm, IsExactForItsShapeTypeAndMode) {
  const Measured measured{.gemms = {cube(64, 1e9), cube(128, 2e9)}};
  EXPECT_DOUBLE_EQ(seconds_of_cube(measured, 128).value(), 2 * 128.0 * 128 * 128 / 2e9);
  EXPECT_FALSE(seconds_of_cube(measured, 64, DType::bf16));
  EXPECT_FALSE(measured_gemm_seconds(
      measured, {.m = 64, .n = 64, .k = 64, .mode = program::ComputeMode::tf32}, DType::f32));
}

/// Halfway between 64 and 256 in both logarithms both weigh the same: sqrt(1e9 * 4e9).
TEST(MeasuredGemm, BlendsRatesOfNeighboursByDistance) {
  const Measured measured{.gemms = {cube(64, 1e9), cube(256, 4e9)}};
  const double expected = 2 * 128.0 * 128 * 128 / 2e9;
  EXPECT_NEAR(seconds_of_cube(measured, 128).value(), expected, 1e-9 * expected);
  // A third of the way has four times the weight of two thirds: (4 * log 1 + log 4) / 5.
  const double third = 64 * std::exp2(2.0 / 3);
  const auto at = static_cast<std::uint32_t>(std::lround(third));
  const double flop = 2 * std::pow(static_cast<double>(at), 3);
  const double rate = flop / seconds_of_cube(measured, at).value();
  EXPECT_NEAR(rate, 1e9 * std::pow(4, 0.2), 0.01 * rate);
}

TEST(MeasuredLocal, LiesBetweenItsSizesAndGoesOnInProportion) {
  Measured measured;
  measured.locals = {{.kind = OpKind::add, .bytes = 1000, .seconds = 2 * us},
                     {.kind = OpKind::add, .bytes = 4000, .seconds = 8 * us},
                     {.kind = OpKind::copy, .bytes = 500, .seconds = 5 * us}};
  EXPECT_DOUBLE_EQ(*measured_local_seconds(measured, OpKind::add, 4000), 8 * us);
  EXPECT_NEAR(*measured_local_seconds(measured, OpKind::add, 2000), 4 * us, 1e-12);
  EXPECT_NEAR(*measured_local_seconds(measured, OpKind::add, 40000), 80 * us, 1e-12);
  // Norms were not measured: the nearest size of any kind, byte for byte.
  EXPECT_NEAR(*measured_local_seconds(measured, OpKind::norm, 600), 6 * us, 1e-12);
  EXPECT_FALSE(measured_local_seconds({}, OpKind::add, 100));
}

/// Rings: all_reduce 2 (n-1) hops and 2 (n-1)/n of the bytes over the wire; parts half of it.
double ring_seconds(OpKind kind, int members, double bytes, double hop, double wire) {
  const double steps = kind == OpKind::all_reduce ? 2.0 * (members - 1) : members - 1.0;
  return steps * hop + steps / members * bytes / wire;
}

double tree_seconds(OpKind, int members, double bytes, double hop, double wire) {
  return 2 * std::log2(members) * hop + 2.0 * (members - 1) / members * bytes / wire;
}

/// Whole messages up a binomial tree and down again.
double binomial_seconds(OpKind, int members, double bytes, double hop, double wire) {
  return 2 * std::log2(members) * (hop + bytes / wire);
}

/// The same, but each hands its message to all below at once, over one wire.
double at_once_seconds(OpKind, int members, double bytes, double hop, double wire) {
  const double levels = std::log2(members);
  return 2 * levels * hop + (levels + levels * (levels + 1) / 2) * bytes / wire;
}

/// Whole messages up a binomial tree, then each its part of the sum from the root.
double reduced_and_dealt_seconds(OpKind, int members, double bytes, double hop, double wire) {
  const double levels = std::log2(members);
  return 2 * levels * hop + (levels + (members - 1.0) / members) * bytes / wire;
}

using Law = double (*)(OpKind, int, double, double, double);

TimedCommunication curve(Law law, OpKind kind, int members, int nodes, double hop, double wire) {
  TimedCommunication result{.kind = kind, .members = members, .nodes = nodes};
  for (double bytes = 8; bytes <= 64 * mib; bytes *= 4) {
    result.samples.push_back({.bytes = bytes, .seconds = law(kind, members, bytes, hop, wire)});
  }
  result.between = Straight::in_bytes;
  result.latency = law(kind, members, 0, hop, wire);
  result.bandwidth = 1 / (law(kind, members, 1, hop, wire) - *result.latency);
  return result;
}

Measured groups(Law law, OpKind kind, const std::vector<int>& sizes) {
  Measured measured;
  for (const int size : sizes) {
    measured.communication.push_back(curve(law, kind, size, 1, 5 * us, 10e9));
  }
  settle_laws(measured);
  return measured;
}

/// One group whose members lie on as many nodes.
Measured one_across(int nodes) {
  Measured measured;
  measured.communication = {curve(ring_seconds, OpKind::all_reduce, nodes, nodes, 5 * us, 10e9)};
  return measured;
}

GroupPlace on_node(int members) {
  return {.members = members, .nodes = 1, .node_members = members};
}
GroupPlace across(int members, int nodes, int sharing = 1) {
  return {.members = members,
          .nodes = nodes,
          .node_members = (members + nodes - 1) / nodes,
          .sharing = sharing};
}

double seconds(const Measured& measured, OpKind kind, double bytes, const GroupPlace& place) {
  return measured_collective_seconds(measured, kind, bytes, place).value();
}

/// Expects that a group of one node is said to take what its law says.
void expect_law(const Measured& measured, Law law, OpKind kind, int members,
                const std::vector<double>& sizes = {8.0, 65536.0, 32 * mib}) {
  for (const double bytes : sizes) {
    const double truth = law(kind, members, bytes, 5 * us, 10e9);
    EXPECT_NEAR(seconds(measured, kind, bytes, on_node(members)), truth, 0.01 * truth) << bytes;
  }
}

TEST(MeasuredCollective, IsTheCurveOfItsGroup) {
  const Measured measured = groups(ring_seconds, OpKind::all_reduce, {2, 4});
  const double at = seconds(measured, OpKind::all_reduce, 4096 * 8, on_node(4));
  EXPECT_NEAR(at, ring_seconds(OpKind::all_reduce, 4, 4096 * 8, 5 * us, 10e9), 1e-12);
  const double large = seconds(measured, OpKind::all_reduce, 1e9, on_node(4));
  EXPECT_NEAR(large, ring_seconds(OpKind::all_reduce, 4, 1e9, 5 * us, 10e9), 1e-6);
  EXPECT_EQ(seconds(measured, OpKind::all_reduce, 1e6, on_node(1)), 0);
}

/// Three groups tell rings from trees, for small messages and for large ones.
TEST(MeasuredCollective, GrowsByTheLawThatThreeGroupsFollow) {
  for (const auto& [law, expected] : {std::pair{Law{ring_seconds}, GrowthLaw::proportional},
                                      {Law{tree_seconds}, GrowthLaw::logarithmic}}) {
    const Measured measured = groups(law, OpKind::all_reduce, {2, 4, 8});
    EXPECT_EQ(measured.communication.front().law, expected);
    expect_law(measured, law, OpKind::all_reduce, 64);
  }
}

/// Both laws fit two groups: gathers go round rings, sums up trees.
TEST(MeasuredCollective, TakesTheUsualAlgorithmWhereTwoGroupsDoNotTell) {
  const Measured gathers = groups(ring_seconds, OpKind::all_gather, {2, 4});
  EXPECT_EQ(gathers.communication.front().law, GrowthLaw::fitted);
  EXPECT_NEAR(seconds(gathers, OpKind::all_gather, 8, on_node(16)), 15 * 5 * us, 0.01 * 75 * us);
  const Measured sums = groups(tree_seconds, OpKind::all_reduce, {2, 4});
  EXPECT_NEAR(seconds(sums, OpKind::all_reduce, 8, on_node(16)), 8 * 5 * us, 0.01 * 40 * us);
}

/// Two groups tell whether bytes are moved in parts or whole, as Open MPI's non-blocking all-reduce
/// in place does.
TEST(MeasuredCollective, MovesWholeMessagesWhereTwoGroupsDo) {
  for (const Law law : {binomial_seconds, at_once_seconds}) {
    expect_law(groups(law, OpKind::all_reduce, {2, 4}), law, OpKind::all_reduce, 8);
  }
  const auto dealt = OpKind::reduce_scatter;
  expect_law(groups(reduced_and_dealt_seconds, dealt, {2, 4}), reduced_and_dealt_seconds, dealt, 8,
             {32 * mib});
  const Measured rings = groups(ring_seconds, OpKind::all_reduce, {2, 4});
  const double parts = 2.0 * 7 / 8 * 32 * mib / 10e9;
  EXPECT_NEAR(seconds(rings, OpKind::all_reduce, 32 * mib, on_node(8)), parts, 0.02 * parts);
  // Small messages tell nothing of bytes.
  Measured small = groups(binomial_seconds, OpKind::all_reduce, {2, 4});
  for (TimedCommunication& at : small.communication) at.samples.resize(2);
  settle_laws(small);
  const double small_parts = 2.0 * 7 / 8 / (2.0 * 3 / 4);
  const double at_four = seconds(small, OpKind::all_reduce, 32 * mib, on_node(4));
  const double at_eight = seconds(small, OpKind::all_reduce, 32 * mib, on_node(8));
  EXPECT_NEAR(at_eight / at_four, small_parts, 0.01 * small_parts);
}

TEST(MeasuredCollective, IsMovedAsAssumedWhereOneGroupWasMeasured) {
  Measured measured = groups(at_once_seconds, OpKind::all_reduce, {4});
  const auto at = [&](Moved untold) {
    measured.untold = untold;
    return seconds(measured, OpKind::all_reduce, 32 * mib, on_node(8));
  };
  const double truth = at_once_seconds(OpKind::all_reduce, 8, 32 * mib, 5 * us, 10e9);
  EXPECT_NEAR(at(Moved::whole_at_once), truth, 0.01 * truth);
  EXPECT_NEAR(at(Moved::parts) / at(Moved::whole), (7.0 / 8) / (3.0 / 4) / (3.0 / 2), 0.01);
}

TEST(MeasuredCollective, LiesBetweenMeasuredGroups) {
  const Measured measured = groups(ring_seconds, OpKind::all_gather, {2, 8});
  expect_law(measured, ring_seconds, OpKind::all_gather, 5, {65536});
}

TEST(MeasuredCollective, KnowsNothingOfLinksThatNoGroupHad) {
  const Measured measured = groups(ring_seconds, OpKind::all_reduce, {2, 4});
  EXPECT_FALSE(measured_collective_seconds(measured, OpKind::all_reduce, 1e6, across(16, 2)));
  EXPECT_FALSE(measured_collective_seconds(one_across(2), OpKind::all_reduce, 1e6, on_node(2)));
}

/// One group across two nodes: nothing is known of the law but that one node costs what its
/// members do, here nothing.
TEST(MeasuredCollective, GoesFromOneNodeThroughTheOnlyGroup) {
  EXPECT_NEAR(seconds(one_across(2), OpKind::all_reduce, 8, across(8, 8)), 30 * us, 0.01 * 30 * us);
}

TEST(MeasuredCollective, SharesThePortsOfANode) {
  Measured measured = one_across(4);
  const auto law = [](double bytes) {
    return ring_seconds(OpKind::all_reduce, 4, bytes, 5 * us, 10e9);
  };
  const double truth = law(8 * 4 * mib);
  EXPECT_NEAR(seconds(measured, OpKind::all_reduce, 4 * mib, across(4, 4, 8)), truth, 1e-3 * truth);
  measured.communication.front().sharing = 8;
  EXPECT_NEAR(seconds(measured, OpKind::all_reduce, 4 * mib, across(4, 4, 8)), law(4 * mib),
              1e-3 * truth);
}

TEST(MeasuredCollective, StandsInForKindsThatWereNotMeasured) {
  const auto time = [](OpKind measured, OpKind wanted) {
    return seconds(groups(ring_seconds, measured, {4}), wanted, mib, on_node(4));
  };
  const double gather = time(OpKind::all_gather, OpKind::all_gather);
  EXPECT_DOUBLE_EQ(time(OpKind::all_gather, OpKind::reduce_scatter), gather);
  EXPECT_DOUBLE_EQ(time(OpKind::all_gather, OpKind::all_reduce), 2 * gather);
  EXPECT_DOUBLE_EQ(time(OpKind::all_reduce, OpKind::all_gather),
                   time(OpKind::all_reduce, OpKind::all_reduce) / 2);
  EXPECT_FALSE(measured_collective_seconds({}, OpKind::all_gather, mib, on_node(4)));
}

TEST(MeasuredMessage, PrefersAPairOverARing) {
  Measured measured;
  const auto message = [](OpKind, int, double bytes, double hop, double wire) {
    return hop + bytes / wire;
  };
  measured.communication = {curve(message, OpKind::exchange, 8, 1, 9 * us, 5e9),
                            curve(message, OpKind::exchange, 2, 1, 3 * us, 10e9),
                            curve(message, OpKind::exchange, 2, 2, 20 * us, 1e9)};
  EXPECT_NEAR(*measured_message_seconds(measured, 8, {.members = 2, .nodes = 1}), 3 * us, 1e-8);
  EXPECT_NEAR(*measured_message_seconds(measured, mib, {.members = 2, .nodes = 2}),
              20 * us + mib / 1e9, 1e-8);
  measured.communication.pop_back();
  EXPECT_FALSE(measured_message_seconds(measured, 8, {.members = 2, .nodes = 2}));
}

TEST(Growth, BusFactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(wire_factor(OpKind::all_reduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(wire_factor(OpKind::all_gather, 8), 0.875);
  EXPECT_DOUBLE_EQ(wire_factor(OpKind::broadcast, 8), 1);
}

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

using timeline::Interval, timeline::IntervalSet;

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
}  // namespace isoscale::simulate
