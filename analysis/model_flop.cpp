// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/model_flop.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace isoscale::analysis {
namespace {

using results::PointData;

bool recomputes(const PointData& point) {
  const auto found = point.options.find("recompute");
  return found != point.options.end() && found->second != "none";
}

double recomputed_flop(const program::Outline& step) {
  double forward = 0, backward = 0;
  for (const program::OutlineOp& op : step.ops) {
    if (op.place.phase == program::Phase::forward) forward += op.flop;
    if (op.place.phase == program::Phase::backward) backward += op.flop;
  }
  return std::max(0.0, backward - 2 * forward);
}

}  // namespace

std::optional<double> model_flop_per_step(const PointData& point) {
  if (point.flop_of_rank.empty()) return std::nullopt;
  double flop = std::reduce(point.flop_of_rank.begin(), point.flop_of_rank.end());
  if (!std::isfinite(flop)) return std::nullopt;
  if (!recomputes(point)) return flop;
  const program::OutlineSet& set = point.outline;
  if (set.outlines.empty() || set.outline_of_rank.size() != point.flop_of_rank.size()) {
    return std::nullopt;
  }
  std::vector<double> recomputed;
  for (const program::Outline& step : set.outlines) recomputed.push_back(recomputed_flop(step));
  for (const std::uint32_t outline : set.outline_of_rank) {
    if (outline >= recomputed.size()) return std::nullopt;
    flop -= recomputed[outline];
  }
  return flop > 0 ? std::optional{flop} : std::nullopt;
}

}  // namespace isoscale::analysis
