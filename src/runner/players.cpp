// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/players.hpp"

#include "mesh/mesh.hpp"

namespace isoscale::runner {

std::vector<Player> players_of(const std::vector<int>& point_ranks, config::FillIdle fill,
                               const std::vector<int>& node_of_rank) {
  std::vector<Player> players(node_of_rank.size());
  const auto of = [&](int rank) -> Player& { return players[static_cast<std::size_t>(rank)]; };
  for (std::size_t i = 0; i < point_ranks.size(); ++i) {
    of(point_ranks[i]) = {.replica = 0, .position = static_cast<int>(i)};
  }
  if (fill == config::FillIdle::idle) return players;
  std::vector<int> rest;
  const auto world = static_cast<int>(node_of_rank.size());
  for (const int rank : mesh::place(mesh::Placement::packed, node_of_rank, world)) {
    if (of(rank).replica < 0) rest.push_back(rank);
  }
  const std::size_t copies = rest.size() / point_ranks.size();
  for (std::size_t i = 0; i < copies * point_ranks.size(); ++i) {
    of(rest[i]) = {.replica = static_cast<int>(i / point_ranks.size()) + 1,
                   .position = static_cast<int>(i % point_ranks.size())};
  }
  return players;
}

}  // namespace isoscale::runner
