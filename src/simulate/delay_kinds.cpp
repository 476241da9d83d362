// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "simulate/delay_kinds.hpp"

#include <cstdint>
#include <map>
#include <utility>

namespace isoscale::simulate {

Kinds kinds_of(const Classes& classes, const Costs& costs, const Layout& layout) {
  Kinds kinds;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> known;
  std::vector<std::size_t> kind_of_class;
  for (std::size_t c = 0; c < classes.rank.size(); ++c) {
    const auto [entry, is_new] =
        known.try_emplace({classes.program[c], costs.table_of_rank[c]}, kinds.all.size());
    if (is_new) kinds.all.emplace_back();
    kinds.all[entry->second].classes.push_back(c);
    kind_of_class.push_back(entry->second);
  }
  std::map<int, std::map<std::size_t, double>> ranks_on_node;
  for (std::size_t rank = 0; rank < classes.class_of_rank.size(); ++rank) {
    const std::size_t kind = kind_of_class[classes.class_of_rank[rank]];
    ++kinds.all[kind].ranks;
    ++ranks_on_node[layout.node_of_rank[rank]][kind];
  }
  std::map<std::map<std::size_t, double>, double> alike;
  for (const auto& [node, ranks] : ranks_on_node) ++alike[ranks];
  for (const auto& [ranks, nodes] : alike) {
    LikeNodes& like = kinds.nodes.emplace_back();
    like.ranks.resize(kinds.all.size());
    like.nodes = nodes;
    for (const auto& [kind, count] : ranks) like.ranks[kind] = count;
  }
  return kinds;
}

}  // namespace isoscale::simulate
