// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "mesh/reach.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <set>
#include <stdexcept>

namespace isoscale::mesh {

std::string_view name(Reach reach) {
  constexpr std::array<std::string_view, 4> names{"alone", "intra-node", "inter-node", "mixed"};
  return names[static_cast<std::size_t>(reach)];
}

Reach reach(const Shape& shape, Axis axis, std::span<const int> node_of_rank) {
  if (node_of_rank.size() != static_cast<std::size_t>(shape.size())) {
    throw std::invalid_argument(fmt::format("{} nodes are named for the {} ranks of a mesh",
                                            node_of_rank.size(), shape.size()));
  }
  if (shape[axis] == 1) return Reach::alone;
  std::map<int, std::set<int>> nodes_of_group;
  for (int rank = 0; rank < shape.size(); ++rank) {
    nodes_of_group[group_colour(shape, rank, axis)].insert(
        node_of_rank[static_cast<std::size_t>(rank)]);
  }
  bool any_inside = false, any_across = false;
  for (const auto& [group, nodes] : nodes_of_group) {
    (nodes.size() == 1 ? any_inside : any_across) = true;
  }
  if (any_inside && any_across) return Reach::mixed;
  return any_inside ? Reach::intra_node : Reach::inter_node;
}

std::string reach_text(const Shape& shape, std::span<const int> node_of_rank) {
  std::string text;
  for (const Axis axis : all_axes) {
    const Reach found = reach(shape, axis, node_of_rank);
    if (found == Reach::alone) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name(axis), name(found));
  }
  return text;
}

}  // namespace isoscale::mesh
