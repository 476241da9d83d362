// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/records/point_facts.hpp"

#include <cstdint>
#include <ranges>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "program/dtypes_and_buffers.hpp"

namespace isoscale::results {

std::optional<double> count_in(const std::map<std::string, std::string>& texts,
                               const std::string& key) {
  const auto found = texts.find(key);
  if (found == texts.end()) return std::nullopt;
  const auto number = base::number_in<std::int64_t>(found->second);
  if (!number || *number < 1) return std::nullopt;
  return static_cast<double>(*number);
}

std::string stored_dtype(const PointData& point) {
  try {
    return std::string{program::name(program::stored_type(program::parse_precision(point.dtype)))};
  } catch (const base::UsageError&) {
    return point.dtype;
  }
}

std::optional<NodeUse> node_use(const RunData& run, const PointData& point) {
  std::vector<int> node_of_rank;
  std::map<int, int> of_point, of_launch;  // numbers of ranks by node
  for (int rank = 0; rank < point.ranks; ++rank) {
    const RankFacts* const facts = facts_of(run.rank_facts, point, rank);
    if (facts == nullptr) return std::nullopt;
    node_of_rank.push_back(facts->node);
    ++of_point[facts->node];
  }
  if (of_point.empty()) return std::nullopt;
  for (const RankFacts& facts : run.rank_facts) ++of_launch[facts.node];
  NodeUse use{.nodes = static_cast<int>(of_point.size()),
              .fewest = std::ranges::min(std::views::values(of_point)),
              .most = std::ranges::max(std::views::values(of_point)),
              .most_of_launch = std::ranges::max(std::views::values(of_launch))};
  use.fills_node = use.nodes == 1 && use.most == of_launch.at(node_of_rank.front());
  // A skipped point has no mesh, so nothing is known of its axes.
  if (point.mesh.size() != point.ranks) return use;
  for (const mesh::Axis axis : mesh::all_axes) {
    const mesh::Reach reach = mesh::reach(point.mesh, axis, node_of_rank);
    if (reach != mesh::Reach::alone) use.axes.emplace(axis, reach);
  }
  return use;
}

std::vector<GemmChoice> choices_of_run(const RunData& run, const std::string& file) {
  std::vector<GemmChoice> choices;
  std::set<std::string_view> shapes;
  for (const PointData& point : run.points) {
    for (const GemmChoice& choice : point.gemm_choices) {
      if (shapes.insert(choice.shape).second) choices.push_back(choice);
    }
  }
  if (!choices.empty()) return choices;
  throw base::usage_error(
      "{}: holds no choice of GEMM algorithms; give a run that was measured on a GPU "
      "(--device cuda)",
      base::printable(file));
}

}  // namespace isoscale::results
