// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/node_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "analysis/curves.hpp"

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
    return {{"baseline", "none: no point can serve as the baseline"}};
  }
  std::string text = baseline_name(curve);
  if (curve.per_node) {
    text += ": speed-up counts nodes";
  } else if (*curve.baseline > 1) {
    text += fmt::format(", assumed {} times as fast as 1 rank", *curve.baseline);
  }
  if (has_unsure_baseline(curve)) {
    const std::size_t steps = baseline_point(curve)->steps;
    text += fmt::format("; only {} of its steps count{}, so every efficiency here is unsure", steps,
                        steps == 1 ? "s" : "");
  }
  return {{"baseline", text}};
}

std::string efficiency_column(const Curve& curve) {
  return curve.baseline ? "vs " + baseline_name(curve) : std::string{"efficiency"};
}

}  // namespace isoscale::analysis
