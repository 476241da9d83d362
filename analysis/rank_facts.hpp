// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "results/run_data.hpp"

namespace isoscale::analysis {

/// What is known of a point's rank; null without anything. Not owned.
inline const results::RankFacts* facts_of(std::span<const results::RankFacts> facts,
                                          const results::PointData& point, int rank) {
  const auto at = static_cast<std::size_t>(rank);
  const int world = at < point.world_rank.size() ? point.world_rank[at] : rank;
  // A run lists its ranks in order; a file may not.
  const auto place = static_cast<std::size_t>(world);
  if (place < facts.size() && facts[place].rank == world) return &facts[place];
  const auto found = std::ranges::find(facts, world, &results::RankFacts::rank);
  return found == facts.end() ? nullptr : &*found;
}

}  // namespace isoscale::analysis
