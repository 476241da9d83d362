// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "program/outline.hpp"
#include "simulate/simulate.hpp"

namespace isoscale::analysis {

/// A mesh with one coordinate for all that are alike.
struct LikeRanks {
  program::OutlineSet set;
  simulate::Costs costs;
  std::vector<std::uint32_t> rank;  ///< of each rank of the whole mesh, the one in `set` like it
};

/// Two coordinates of an axis are alike when no message goes along it, and ranks that differ in
/// nothing else have one outline and one table of costs: exchanging them changes nothing, so that
/// on a network where the number of members costs nothing both play at the same times, and a
/// collective ends when it would with one of them. `set` and `costs` have passed check_trace.
[[nodiscard]] LikeRanks like_ranks(const program::OutlineSet& set, simulate::Costs costs);

}  // namespace isoscale::analysis
