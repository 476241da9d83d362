// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "simulate/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace isoscale::simulate {
namespace {

void require_nodes(const mesh::Shape& shape, const Layout& layout) {
  if (layout.node_of_rank.size() != at(shape.size())) {
    throw std::invalid_argument(fmt::format("a layout of {} ranks for a mesh of {}",
                                            layout.node_of_rank.size(), shape.size()));
  }
  // Lists with one element for each node must fit into memory.
  constexpr int most_nodes = 1 << 24;
  const auto [least, most] = std::ranges::minmax(layout.node_of_rank);
  if (least < 0 || most >= most_nodes) {
    throw std::invalid_argument(
        fmt::format("a rank of the layout is on a node that is not from 0 to {}", most_nodes - 1));
  }
}

/// Identifies the part of a group that is on one node.
struct Part {
  int group = 0, node = 0;
  auto operator<=>(const Part&) const = default;
};

}  // namespace

Layout packed(int ranks, int node_ranks) {
  if (ranks < 1 || node_ranks < 1) {
    throw std::invalid_argument(
        fmt::format("{} ranks cannot be packed on nodes of {}", ranks, node_ranks));
  }
  Layout layout{.node_of_rank = std::vector<int>(at(ranks))};
  for (int rank = 0; rank < ranks; ++rank) layout.node_of_rank[at(rank)] = rank / node_ranks;
  return layout;
}

std::vector<GroupPlace> places_of(const mesh::Shape& shape, const Layout& layout,
                                  mesh::AxisSet axes) {
  require_nodes(shape, layout);
  const int members = mesh::group_size(shape, axes);
  std::vector<int> group_of(at(shape.size()));
  std::vector<Part> parts(group_of.size());
  int nodes = 0;
  for (int rank = 0; rank < shape.size(); ++rank) {
    const int node = layout.node_of_rank[at(rank)];
    group_of[at(rank)] = mesh::group_colour(shape, rank, axes);
    parts[at(rank)] = {.group = group_of[at(rank)], .node = node};
    nodes = std::max(nodes, node + 1);
  }
  std::ranges::sort(parts);
  std::vector<GroupPlace> groups(at(shape.size() / members),
                                 {.members = members, .nodes = 0, .node_members = 0, .sharing = 0});
  std::vector<int> first_node(groups.size());
  std::vector<Part> distinct;
  for (std::size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
    while (end < parts.size() && parts[end] == parts[begin]) ++end;
    GroupPlace& place = groups[at(parts[begin].group)];
    int& first = first_node[at(parts[begin].group)];
    if (place.nodes == 0) first = parts[begin].node;
    ++place.nodes;
    place.reach = parts[begin].node - first + 1;
    place.node_members = std::max(place.node_members, static_cast<int>(end - begin));
    distinct.push_back(parts[begin]);
  }
  // wide[n] is the number of groups with members on node n and on other nodes, narrow[n] the number
  // of groups that are on node n alone.
  std::vector<int> wide(at(nodes)), narrow(at(nodes));
  const auto of_kind = [&](const Part& part) -> int& {
    return (groups[at(part.group)].nodes > 1 ? wide : narrow)[at(part.node)];
  };
  for (const Part& part : distinct) ++of_kind(part);
  for (const Part& part : distinct) {
    int& sharing = groups[at(part.group)].sharing;
    sharing = std::max(sharing, of_kind(part));
  }
  std::vector<GroupPlace> places;
  places.reserve(group_of.size());
  for (const int group : group_of) places.push_back(groups[at(group)]);
  return places;
}

std::vector<GroupPlace> places_of_messages(const mesh::Shape& shape, const Layout& layout,
                                           mesh::Axis axis, int offset) {
  require_nodes(shape, layout);
  const std::vector<int>& node = layout.node_of_rank;
  const std::size_t nodes = at(1 + *std::max_element(node.begin(), node.end()));
  std::vector<int> staying(nodes), leaving(nodes), entering(nodes), receiver_of;
  for (int rank = 0; rank < shape.size(); ++rank) {
    receiver_of.push_back(mesh::neighbour(shape, rank, axis, offset));
    const int from = node[at(rank)], to = node[at(receiver_of.back())];
    if (from == to) {
      ++staying[at(from)];
    } else {
      ++leaving[at(from)];
      ++entering[at(to)];
    }
  }
  std::vector<GroupPlace> places(node.size());
  for (int rank = 0; rank < shape.size(); ++rank) {
    const int receiver = receiver_of[at(rank)];
    if (receiver == rank) continue;
    const int from = node[at(rank)], to = node[at(receiver)];
    const int sharing =
        from == to ? staying[at(from)] : std::max(leaving[at(from)], entering[at(to)]);
    places[at(rank)] = {.members = 2,
                        .nodes = from == to ? 1 : 2,
                        .node_members = from == to ? 2 : 1,
                        .sharing = sharing,
                        .reach = std::abs(to - from) + 1};
  }
  return places;
}

}  // namespace isoscale::simulate
