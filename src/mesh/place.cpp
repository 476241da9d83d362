// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "mesh/mesh.hpp"

namespace isoscale::mesh {
namespace {

/// The world ranks of each node, nodes in order of first appearance.
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

std::vector<std::size_t> deal_out(const std::vector<std::vector<int>>& nodes, std::size_t count) {
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

std::vector<int> place(Placement placement, const std::vector<int>& node_of_rank, int count) {
  if (count < 1 || static_cast<std::size_t>(count) > node_of_rank.size()) {
    throw std::invalid_argument(
        fmt::format("cannot place {} ranks in a world of {}", count, node_of_rank.size()));
  }
  const auto nodes = ranks_by_node(node_of_rank);
  const auto wanted = static_cast<std::size_t>(count);
  const auto taken =
      placement == Placement::packed ? fill_in_order(nodes, wanted) : deal_out(nodes, wanted);
  std::vector<int> chosen;
  chosen.reserve(wanted);
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const auto first = nodes[node].begin();
    chosen.insert(chosen.end(), first, first + static_cast<std::ptrdiff_t>(taken[node]));
  }
  return chosen;
}

}  // namespace isoscale::mesh
