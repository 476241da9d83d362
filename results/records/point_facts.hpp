// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mesh/mesh.hpp"
#include "results/records/run_data.hpp"

/// Finds facts about a point in its record and in its run: its labels, its ranks' numbers in the
/// launch, and their nodes.
namespace isoscale::results {

/// The labels of points whose times do not represent the machine, since ranks shared cores or a
/// GPU, or faults were injected.
inline constexpr std::array<std::string_view, 3> unsound_labels{"oversubscribed", "shared-gpu",
                                                                "injected"};

[[nodiscard]] inline bool has_label(const std::vector<std::string>& labels,
                                    std::string_view label) {
  return std::ranges::find(labels, label) != labels.end();
}

/// True if ranks of the point shared cores or a GPU, so that its time is no measure of scaling.
[[nodiscard]] inline bool shares_hardware(const std::vector<std::string>& labels) {
  return has_label(labels, "oversubscribed") || has_label(labels, "shared-gpu");
}

/// The label of points with too few counted steps for an interval: their time is unreliable, and so
/// is everything derived from it. The analysis sets this label; it is not stored.
inline constexpr std::string_view few_steps = "few-steps";
inline constexpr std::size_t fewest_steps = 6;

[[nodiscard]] inline bool is_scaling_result(const std::vector<std::string>& labels) {
  return std::ranges::find_first_of(labels, unsound_labels) == labels.end();
}

/// Returns the elements of unsound_labels that `labels` contains.
[[nodiscard]] inline std::vector<std::string> unsound(const std::vector<std::string>& labels) {
  std::vector<std::string> found;
  for (const std::string_view label : unsound_labels) {
    if (has_label(labels, label)) found.emplace_back(label);
  }
  return found;
}

/// Returns the entry `key` of a point's options or of its model's sizes as a number; absent if
/// there is no such entry or if it is not a whole number of at least 1.
[[nodiscard]] std::optional<double> count_in(const std::map<std::string, std::string>& texts,
                                             const std::string& key);

/// Converts a rank of the point to its rank in the launch (MPI_COMM_WORLD), which reports show.
/// Returns `rank` itself if the file does not store it.
inline int world_rank(const PointData& point, int rank) {
  const auto at = static_cast<std::size_t>(rank);
  return at < point.world_rank.size() ? point.world_rank[at] : rank;
}

/// Converts a container of ranks of the point to their ranks in the launch, in the same order.
template <class Ranks>
std::vector<int> world_ranks(const PointData& point, const Ranks& ranks) {
  std::vector<int> result;
  for (const int rank : ranks) result.push_back(world_rank(point, rank));
  return result;
}

/// Returns the element of `facts` that belongs to a rank of the point; null if there is none.
inline const RankFacts* facts_of(std::span<const RankFacts> facts, const PointData& point,
                                 int rank) {
  const int world = world_rank(point, rank);
  // Isoscale stores the facts in the order of ranks; a file from another program may not.
  const auto place = static_cast<std::size_t>(world);
  if (place < facts.size() && facts[place].rank == world) return &facts[place];
  const auto found = std::ranges::find(facts, world, &RankFacts::rank);
  return found == facts.end() ? nullptr : &*found;
}

/// Returns the name of the element type in which the point's data is stored and sent, by which
/// micro-benchmarks name their rows: "f32" for tf32, "e4m3" for fp8. Returns the point's dtype if
/// this version does not know it.
[[nodiscard]] std::string stored_dtype(const PointData& point);

/// The distribution of a point's ranks over nodes, and of each mesh axis over nodes.
struct NodeUse {
  int nodes = 0;
  int fewest = 0, most = 0;  ///< least and most ranks of the point on one of its nodes
  int most_of_launch = 0;    ///< most ranks of the launch on any node
  /// True if the point is on one node and has all ranks of the launch that are on this node.
  bool fills_node = false;
  /// For each axis with several ranks, the way in which its groups lie on nodes; empty for a
  /// skipped point, which has no mesh.
  std::map<mesh::Axis, mesh::Reach> axes{};

  bool operator==(const NodeUse&) const = default;
};

/// Returns the distribution of a point's ranks; absent where the node of some rank is not known, or
/// if the point has no ranks.
[[nodiscard]] std::optional<NodeUse> node_use(const RunData& run, const PointData& point);

/// Returns the GEMM algorithms that a run chose, one for each shape, from the first point that has
/// the shape. Throws base::UsageError, whose message begins with `file`, if there are none.
[[nodiscard]] std::vector<GemmChoice> choices_of_run(const RunData& run, const std::string& file);

}  // namespace isoscale::results
