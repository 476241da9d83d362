// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/node_cells.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace isoscale::analysis {

bool spans_nodes(const Curve& curve) {
  return std::ranges::any_of(curve.points,
                             [](const PointReport& point) { return point.data->nodes > 1; });
}

std::string nodes_cell(const PointReport& point) {
  if (!point.nodes) return std::to_string(point.data->nodes);
  const NodeUse& use = *point.nodes;
  const std::string ranks = use.fewest == use.most ? std::to_string(use.most)
                                                   : fmt::format("{}-{}", use.fewest, use.most);
  return fmt::format("{} x {}", use.nodes, ranks);
}

std::string axes_text(const PointReport& point) {
  if (!point.nodes || point.nodes->nodes < 2) return "";
  std::string text;
  for (const auto& [axis, reach] : point.nodes->axes) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", mesh::name(axis), mesh::name(reach));
  }
  return text;
}

Facts baseline_remark(const Curve& curve) {
  if (!curve.baseline) {
    return {{"baseline", "none: no point that efficiency could be against"}};
  }
  const int ranks = *curve.baseline;
  if (curve.per_node) {
    return {{"baseline", fmt::format("one whole node of {} rank{}: speed-up counts nodes", ranks,
                                     ranks == 1 ? "" : "s")}};
  }
  if (ranks == 1) return {};
  return {{"baseline", fmt::format("{} ranks, which count as {} times one", ranks, ranks)}};
}

}  // namespace isoscale::analysis
