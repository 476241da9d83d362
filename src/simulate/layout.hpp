// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "mesh/mesh.hpp"

namespace isoscale::simulate {

/// The index of a rank in a vector by rank.
inline std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
/// On which node each rank of a mesh is; nodes count from 0.
struct Layout {
  std::vector<int> node_of_rank;
  /// The number of ranks that fill each node where they are packed (what packed() sets): places are
  /// arithmetic then. 0 = ranks lie as node_of_rank says, in any way.
  int node_ranks = 0;
};

/// Node after node filled with `node_ranks` ranks. Throws std::invalid_argument below 1.
[[nodiscard]] Layout packed(int ranks, int node_ranks);

/// A group of ranks as the network sees it.
struct GroupPlace {
  int members = 1;
  int nodes = 1;
  int node_members = 1;  ///< members on one node, at most
  /// Groups of the same kind that are on one of its nodes, at most: they share its ports. Of a
  /// group on several nodes, only those that are on several nodes too.
  int sharing = 1;
  bool operator==(const GroupPlace&) const = default;
};

/// The place of the group of `rank` along `axes`. Throws std::invalid_argument when the layout has
/// not a node for every rank.
[[nodiscard]] GroupPlace place_of(const mesh::Shape& shape, const Layout& layout, int rank,
                                  mesh::AxisSet axes);
/// place_of every rank of the mesh, in about the time of one.
[[nodiscard]] std::vector<GroupPlace> places_of(const mesh::Shape& shape, const Layout& layout,
                                                mesh::AxisSet axes);

/// The place of a message from `rank` to the rank `offset` along `axis`: 2 members (1 where that is
/// the rank itself). Sharing counts the messages between nodes that leave the sender's node, or
/// reach the receiver's, when every rank sends one like it; inside a node, those that stay there.
[[nodiscard]] GroupPlace place_of_message(const mesh::Shape& shape, const Layout& layout, int rank,
                                          mesh::Axis axis, int offset);
/// place_of_message of every rank of the mesh, in about the time of one.
[[nodiscard]] std::vector<GroupPlace> places_of_messages(const mesh::Shape& shape,
                                                         const Layout& layout, mesh::Axis axis,
                                                         int offset);

}  // namespace isoscale::simulate
