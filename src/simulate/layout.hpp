// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <cstddef>
#include <vector>

#include "mesh/mesh.hpp"

namespace isoscale::simulate {

/// Converts a rank to its index in a vector by rank.
inline std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
/// The node that each rank of a mesh is on; nodes count from 0.
struct Layout {
  std::vector<int> node_of_rank;
  /// The number of ranks on each node of a packed layout, set by packed(): places are then computed
  /// by arithmetic. 0 = node_of_rank may be in any order.
  int node_ranks = 0;
};

/// Returns the layout that fills node after node with `node_ranks` ranks. Throws
/// std::invalid_argument if `node_ranks` is below 1.
[[nodiscard]] Layout packed(int ranks, int node_ranks);

/// The place of a group of ranks on the nodes.
struct GroupPlace {
  int members = 1;
  int nodes = 1;
  int node_members = 1;  ///< largest number of members on one node
  /// The largest number of groups along the same axes that have members on one node of this group,
  /// and so share the node's ports. For a group on several nodes, only groups on several nodes are
  /// counted.
  int sharing = 1;
  auto operator<=>(const GroupPlace&) const = default;
};

/// Returns for every rank of the mesh the place of its group along `axes`. Throws
/// std::invalid_argument if the layout lacks a node for a rank.
[[nodiscard]] std::vector<GroupPlace> places_of(const mesh::Shape& shape, const Layout& layout,
                                                mesh::AxisSet axes);

/// Returns for every rank of the mesh the place of a message to the rank `offset` steps along
/// `axis`: 2 members, or 1 if it is a message to itself. `sharing` is counted as if every rank sent
/// such a message. For a message between nodes it is the number of messages that leave the sender's
/// node or that reach the receiver's node, whichever is larger; for a message inside a node, it is
/// the number of messages inside this node.
[[nodiscard]] std::vector<GroupPlace> places_of_messages(const mesh::Shape& shape,
                                                         const Layout& layout, mesh::Axis axis,
                                                         int offset);

}  // namespace isoscale::simulate
