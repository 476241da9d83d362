// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "config/run_config.hpp"

namespace isoscale::runner {

/// What one rank of the world does while a point is measured.
struct Player {
  int replica = -1;  ///< 0: the point itself; above: a copy of it; -1: it sleeps
  int position = 0;  ///< in the replica, mesh order
};

/// By world rank. With FillIdle::replicas the ranks outside the point play copies of it in groups
/// as large as the point, in node order; what is left over sleeps. Pure.
[[nodiscard]] std::vector<Player> players_of(const std::vector<int>& point_ranks,
                                             config::FillIdle fill,
                                             const std::vector<int>& node_of_rank);

}  // namespace isoscale::runner
