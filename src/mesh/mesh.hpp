// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Converts between ranks and coordinates on the mesh of parallel axes; pure arithmetic.
namespace isoscale::mesh {
/// The axes of parallelism (tensor, context, expert, data, pipeline); tp varies fastest over ranks,
/// pp slowest.
enum class Axis : std::uint8_t { tp, cp, ep, dp, pp };
inline constexpr std::array all_axes{Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp};
inline constexpr std::size_t axis_count = all_axes.size();

[[nodiscard]] std::string_view name(Axis axis);

/// A set of axes, which defines groups of ranks that differ only along these axes. Sets can be
/// compared, so they can be keys of a map.
class AxisSet {
 public:
  constexpr AxisSet() = default;
  constexpr AxisSet(Axis axis) : bits_(bit(axis)) {}  // NOLINT: an axis is a set of one
  constexpr AxisSet(std::initializer_list<Axis> axes) {
    for (const Axis axis : axes) bits_ = static_cast<std::uint8_t>(bits_ | bit(axis));
  }
  [[nodiscard]] static constexpr AxisSet from_bits(std::uint8_t bits) {
    AxisSet set;
    set.bits_ = bits;
    return set;
  }
  [[nodiscard]] constexpr bool contains(Axis axis) const { return (bits_ & bit(axis)) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr std::uint8_t bits() const { return bits_; }
  constexpr auto operator<=>(const AxisSet&) const = default;
  constexpr AxisSet& operator|=(AxisSet other) {
    bits_ = static_cast<std::uint8_t>(bits_ | other.bits_);
    return *this;
  }
  /// Returns the axes that are in `a` and not in `b`.
  friend constexpr AxisSet operator-(AxisSet a, AxisSet b) {
    return from_bits(static_cast<std::uint8_t>(a.bits_ & ~b.bits_));
  }

 private:
  static constexpr std::uint8_t bit(Axis axis) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(axis));
  }
  std::uint8_t bits_ = 0;
};
inline constexpr AxisSet every_axis{Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp};

[[nodiscard]] std::string to_string(AxisSet axes);  ///< "dp", "dp+tp", "world" for all five, "self"
                                                    ///< for none

/// The extent of each axis; the product is the number of ranks.
struct Shape {
  int tp = 1, cp = 1, ep = 1, dp = 1, pp = 1;
  [[nodiscard]] constexpr int operator[](Axis axis) const {
    return std::array{tp, cp, ep, dp, pp}[static_cast<std::size_t>(axis)];
  }
  [[nodiscard]] constexpr int& operator[](Axis axis) {
    return *std::array{&tp, &cp, &ep, &dp, &pp}[static_cast<std::size_t>(axis)];
  }
  [[nodiscard]] constexpr int size() const { return tp * cp * ep * dp * pp; }
  constexpr bool operator==(const Shape&) const = default;
};

/// A value for each axis.
template <class Value>
struct PerAxis {
  Value tp{}, cp{}, ep{}, dp{}, pp{};
  [[nodiscard]] constexpr Value operator[](Axis axis) const {
    return std::array{tp, cp, ep, dp, pp}[static_cast<std::size_t>(axis)];
  }
  [[nodiscard]] constexpr Value& operator[](Axis axis) {
    return *std::array{&tp, &cp, &ep, &dp, &pp}[static_cast<std::size_t>(axis)];
  }
  constexpr bool operator==(const PerAxis&) const = default;
};
/// A rank's position along each axis, counted from 0.
using Coordinates = PerAxis<int>;

[[nodiscard]] std::string to_string(
    const Shape& shape);  ///< "dp=2,tp=2", without axes of extent 1; "1" for one rank

/// Returns the difference in rank between neighbours along `axis`.
[[nodiscard]] int stride(const Shape& shape, Axis axis);
[[nodiscard]] Coordinates coordinates(const Shape& shape, int rank);
[[nodiscard]] int rank_at(const Shape& shape, const Coordinates& at);
/// Returns the rank that is `offset` steps along `axis` from `rank`, wrapping around.
[[nodiscard]] int neighbour(const Shape& shape, int rank, Axis axis, int offset);

/// Returns the axes in `axes` along which the mesh has more than one rank.
[[nodiscard]] AxisSet varying(const Shape& shape, AxisSet axes);

[[nodiscard]] int group_size(const Shape& shape, AxisSet axes);
/// Returns the ranks that differ from `rank` only along `axes`, ascending, `rank` included.
[[nodiscard]] std::vector<int> group_members(const Shape& shape, int rank, AxisSet axes);
/// Returns the position of `rank` in what group_members() returns for the same arguments.
[[nodiscard]] int group_index(const Shape& shape, int rank, AxisSet axes);
/// Returns the index, counted from 0, of the group of `rank` among all groups along `axes`.
[[nodiscard]] int group_colour(const Shape& shape, int rank, AxisSet axes);

/// The rule that selects the world ranks of a point (a measurement) with fewer ranks than the
/// launch: packed fills node after node, spread distributes them evenly over the nodes.
enum class Placement : std::uint8_t { packed, spread };
[[nodiscard]] std::string_view name(Placement placement);

/// Returns the world ranks that become ranks 0 ... count - 1 of a point (a measurement), in this
/// order. Consecutive ranks of the point are on one node as far as the placement allows.
/// node_of_rank[r] is the node index of world rank r. With packed, nodes are filled one after the
/// other in order of first appearance. With spread, the ranks are divided over all nodes as evenly
/// as possible, and the result is still grouped by node. Throws std::invalid_argument when count is
/// not in 1 ... world size.
[[nodiscard]] std::vector<int> place(Placement placement, const std::vector<int>& node_of_rank,
                                     int count);

/// The way that the groups along an axis lie on nodes: alone = the axis has one rank, so nothing is
/// sent along it; intra_node = every group lies on one node; inter_node = every group spans several
/// nodes; mixed = some groups lie on one node and others span several.
enum class Reach : std::uint8_t { alone, intra_node, inter_node, mixed };
/// Returns "alone", "intra-node", "inter-node" or "mixed".
[[nodiscard]] std::string_view name(Reach reach);

/// Returns the reach of `axis` when rank r of the mesh is on node `node_of_rank[r]`. Throws
/// std::invalid_argument unless every rank has a node.
[[nodiscard]] Reach reach(const Shape& shape, Axis axis, std::span<const int> node_of_rank);

/// Returns the reach of each axis that has more than one rank: "tp intra-node, dp inter-node"; ""
/// if there is no such axis.
[[nodiscard]] std::string reach_text(const Shape& shape, std::span<const int> node_of_rank);

}  // namespace isoscale::mesh
