// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "mesh/mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <unordered_map>

namespace isoscale::mesh {
namespace {

constexpr std::array<std::string_view, axis_count> axis_names{"tp", "cp", "ep", "dp", "pp"};
/// The order in which the axes of a mesh are written: dp first, as usual, as in "dp+tp".
constexpr std::array written_order{Axis::dp, Axis::tp, Axis::pp, Axis::cp, Axis::ep};

/// Reads the coordinates along `axes` as the digits of one number, with the fastest axis as the
/// lowest digit, and returns this number.
int number_along(const Shape& shape, const Coordinates& at, AxisSet axes) {
  int number = 0;
  int weight = 1;
  for (const Axis axis : all_axes) {
    if (!axes.contains(axis)) continue;
    number += at[axis] * weight;
    weight *= shape[axis];
  }
  return number;
}

/// Returns the world ranks of each node, with nodes in order of first appearance.
std::vector<std::vector<int>> ranks_by_node(const std::vector<int>& node_of_rank) {
  std::vector<std::vector<int>> nodes;
  std::unordered_map<int, std::size_t> position;
  for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    const auto [entry, is_new] = position.try_emplace(node_of_rank[rank], nodes.size());
    if (is_new) nodes.emplace_back();
    nodes[entry->second].push_back(static_cast<int>(rank));
  }
  return nodes;
}

std::vector<std::size_t> fill_in_order(const std::vector<std::vector<int>>& nodes,
                                       std::size_t count) {
  std::vector<std::size_t> taken;
  for (const auto& ranks : nodes) {
    taken.push_back(std::min(ranks.size(), count));
    count -= taken.back();
  }
  return taken;
}

std::vector<std::size_t> take_in_turn(const std::vector<std::vector<int>>& nodes,
                                      std::size_t count) {
  std::vector<std::size_t> taken(nodes.size(), 0);
  while (count > 0) {
    for (std::size_t node = 0; node < nodes.size() && count > 0; ++node) {
      if (taken[node] == nodes[node].size()) continue;
      ++taken[node];
      --count;
    }
  }
  return taken;
}

}  // namespace

std::string_view name(Axis axis) { return axis_names[static_cast<std::size_t>(axis)]; }

std::string_view name(Placement placement) {
  return placement == Placement::packed ? "packed" : "spread";
}

std::string to_string(AxisSet axes) {
  if (axes == every_axis) return "world";
  if (axes.empty()) return "self";
  std::string text;
  for (const Axis axis : written_order) {
    if (axes.contains(axis)) text += fmt::format("{}{}", text.empty() ? "" : "+", name(axis));
  }
  return text;
}

std::string to_string(const Shape& shape) {
  std::string text;
  for (const Axis axis : written_order) {
    if (shape[axis] == 1) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name(axis), shape[axis]);
  }
  return text.empty() ? "1" : text;
}

int stride(const Shape& shape, Axis axis) {
  Coordinates at;
  at[axis] = 1;
  return number_along(shape, at, every_axis);
}

Coordinates coordinates(const Shape& shape, int rank) {
  if (rank < 0 || rank >= shape.size()) {
    throw std::invalid_argument(fmt::format("rank {} is not on the mesh {} of {} ranks", rank,
                                            to_string(shape), shape.size()));
  }
  Coordinates at;
  for (const Axis axis : all_axes) {
    at[axis] = rank % shape[axis];
    rank /= shape[axis];
  }
  return at;
}

int rank_at(const Shape& shape, const Coordinates& at) {
  for (const Axis axis : all_axes) {
    if (at[axis] < 0 || at[axis] >= shape[axis]) {
      throw std::invalid_argument(fmt::format("{} coordinate {} is not on the mesh {}", name(axis),
                                              at[axis], to_string(shape)));
    }
  }
  return number_along(shape, at, every_axis);
}

int neighbour(const Shape& shape, int rank, Axis axis, int offset) {
  Coordinates at = coordinates(shape, rank);
  const int extent = shape[axis];
  // The offset is reduced before it is added, so that the sum cannot overflow.
  at[axis] = ((at[axis] + offset % extent) % extent + extent) % extent;
  return rank_at(shape, at);
}

AxisSet varying(const Shape& shape, AxisSet axes) {
  for (const Axis axis : all_axes) {
    if (shape[axis] == 1) axes = axes - axis;
  }
  return axes;
}

int group_size(const Shape& shape, AxisSet axes) {
  int size = 1;
  for (const Axis axis : all_axes) {
    if (axes.contains(axis)) size *= shape[axis];
  }
  return size;
}

std::vector<int> group_members(const Shape& shape, int rank, AxisSet axes) {
  Coordinates first = coordinates(shape, rank);
  for (const Axis axis : all_axes) {
    if (axes.contains(axis)) first[axis] = 0;
  }
  // Strides grow with the axis, so appending copies of the list, shifted by the stride, keeps it
  // ascending.
  std::vector<int> members{rank_at(shape, first)};
  members.reserve(static_cast<std::size_t>(group_size(shape, axes)));
  for (const Axis axis : all_axes) {
    if (!axes.contains(axis)) continue;
    const std::size_t count = members.size();
    for (int step = 1; step < shape[axis]; ++step) {
      for (std::size_t i = 0; i < count; ++i) {
        members.push_back(members[i] + step * stride(shape, axis));
      }
    }
  }
  return members;
}

int group_index(const Shape& shape, int rank, AxisSet axes) {
  return number_along(shape, coordinates(shape, rank), axes);
}

int group_colour(const Shape& shape, int rank, AxisSet axes) {
  return number_along(shape, coordinates(shape, rank), every_axis - axes);
}

std::vector<int> place(Placement placement, const std::vector<int>& node_of_rank, int count) {
  if (count < 1 || static_cast<std::size_t>(count) > node_of_rank.size()) {
    throw std::invalid_argument(
        fmt::format("cannot place {} ranks in a world of {}", count, node_of_rank.size()));
  }
  const auto nodes = ranks_by_node(node_of_rank);
  const auto wanted = static_cast<std::size_t>(count);
  const auto taken =
      placement == Placement::packed ? fill_in_order(nodes, wanted) : take_in_turn(nodes, wanted);
  std::vector<int> chosen;
  chosen.reserve(wanted);
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const auto first = nodes[node].begin();
    chosen.insert(chosen.end(), first, first + static_cast<std::ptrdiff_t>(taken[node]));
  }
  return chosen;
}

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
