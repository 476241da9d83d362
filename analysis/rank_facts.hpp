// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "mesh/mesh.hpp"
#include "mesh/reach.hpp"
#include "results/run_data.hpp"

namespace isoscale::analysis {

/// The rank in the launch, MPI's, of a rank of the point: the one that people are shown. The same
/// number where the file does not tell.
inline int world_rank(const results::PointData& point, int rank) {
  const auto at = static_cast<std::size_t>(rank);
  return at < point.world_rank.size() ? point.world_rank[at] : rank;
}

/// The same for each of `ranks`, any container of them, in its order.
template <class Ranks>
std::vector<int> world_ranks(const results::PointData& point, const Ranks& ranks) {
  std::vector<int> result;
  for (const int rank : ranks) result.push_back(world_rank(point, rank));
  return result;
}

/// Facts about a point's rank; null where there are none. Not owned.
inline const results::RankFacts* facts_of(std::span<const results::RankFacts> facts,
                                          const results::PointData& point, int rank) {
  const int world = world_rank(point, rank);
  // A run lists its ranks in order; a file may not.
  const auto place = static_cast<std::size_t>(world);
  if (place < facts.size() && facts[place].rank == world) return &facts[place];
  const auto found = std::ranges::find(facts, world, &results::RankFacts::rank);
  return found == facts.end() ? nullptr : &*found;
}

/// How the ranks of a point lie on nodes.
struct NodeUse {
  int nodes = 0;
  int fewest = 0, most = 0;  ///< ranks of the point on one of its nodes
  int most_of_launch = 0;    ///< ranks of the launch on one node, the fullest
  bool fills_node = false;   ///< it is on one node, with all ranks that the launch has there
  std::map<mesh::Axis, mesh::Reach> axes{};  ///< of more than one rank

  bool operator==(const NodeUse&) const = default;
};

/// Absent where the node of some rank is not known.
[[nodiscard]] std::optional<NodeUse> node_use(const results::RunData& run,
                                              const results::PointData& point);

}  // namespace isoscale::analysis
