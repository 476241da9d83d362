// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "mesh/mesh.hpp"

namespace isoscale::simulate {

/// Converts a rank to the index of a vector with one element for each rank.
inline std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
/// The node that each rank of a mesh is on; nodes are numbered from 0, and below 2^24.
struct Layout {
  std::vector<int> node_of_rank;
};

/// Returns the layout that fills one node after the other with `node_ranks` ranks. Throws
/// std::invalid_argument if `ranks` or `node_ranks` is below 1.
[[nodiscard]] Layout packed(int ranks, int node_ranks);

/// The way in which a group of ranks is placed on nodes.
struct GroupPlace {
  int members = 1;
  int nodes = 1;
  int node_members = 1;  ///< largest number of members on one node
  /// The number of groups along the same axes, this one included, that have members on one node of
  /// this group; the largest number over its nodes. For a group over several nodes, only groups
  /// over several nodes are counted, since only these share the node's network ports. For a group
  /// on one node, only groups that are entirely on this node are counted.
  int sharing = 1;
  /// The number of nodes from the group's first node to its last one; 0 = as many as `nodes`.
  int reach = 0;
  auto operator<=>(const GroupPlace&) const = default;
};

/// Returns, for every rank of the mesh, the placement of its group along `axes`. Throws
/// std::invalid_argument if the layout lacks a node for a rank or has an invalid one.
[[nodiscard]] std::vector<GroupPlace> places_of(const mesh::Shape& shape, const Layout& layout,
                                                mesh::AxisSet axes);

/// Returns, for every rank of the mesh, the placement of a message to the rank that is `offset`
/// steps away along `axis`: 2 members, or 1 if a rank sends to itself. `sharing` is counted as if
/// every rank sent such a message. For a message between nodes it is the number of messages that
/// leave the sender's node or the number that reach the receiver's node, whichever is larger; for a
/// message inside a node it is the number of messages inside this node. Throws
/// std::invalid_argument if the layout lacks a node for a rank or has an invalid one.
[[nodiscard]] std::vector<GroupPlace> places_of_messages(const mesh::Shape& shape,
                                                         const Layout& layout, mesh::Axis axis,
                                                         int offset);

/// The placements of all groups and messages of a mesh. Each list has a placement for every rank;
/// it is made when it is first asked for, and kept.
class Places {
 public:
  /// Keeps references to the arguments, which must outlive this object.
  Places(const mesh::Shape& shape, const Layout& layout) : shape_(shape), layout_(layout) {}
  /// Returns places_of() for these axes.
  [[nodiscard]] const std::vector<GroupPlace>& of_groups(mesh::AxisSet axes) {
    const auto [entry, is_new] = groups_.try_emplace(axes);
    if (is_new) entry->second = places_of(shape_, layout_, axes);
    return entry->second;
  }
  /// Returns places_of_messages() for this axis and offset.
  [[nodiscard]] const std::vector<GroupPlace>& of_messages(mesh::Axis axis, int offset) {
    const auto [entry, is_new] = messages_.try_emplace({axis, offset});
    if (is_new) entry->second = places_of_messages(shape_, layout_, axis, offset);
    return entry->second;
  }

 private:
  const mesh::Shape& shape_;
  const Layout& layout_;
  std::map<mesh::AxisSet, std::vector<GroupPlace>> groups_;
  std::map<std::pair<mesh::Axis, int>, std::vector<GroupPlace>> messages_;
};

}  // namespace isoscale::simulate
