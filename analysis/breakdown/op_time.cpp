// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/op_time.hpp"

#include <array>
#include <cstddef>

#include "analysis/breakdown/trace_check.hpp"
#include "units/quantity.hpp"

namespace isoscale::analysis {

std::map<std::string, double> op_times(const results::PointData& point) {
  std::array<units::Nanoseconds, program::op_kind_count> total{};
  std::array<bool, program::op_kind_count> seen{};
  std::size_t steps = 0;
  for (const timeline::Timeline& timeline : point.traces) {
    if (!step_counts(point, timeline)) continue;
    for (const timeline::StepTrace& trace : timeline.ranks) {
      if (check_trace(point, trace) != TraceState::usable) continue;
      const program::Outline& outline = point.outline.of(trace.rank);
      ++steps;
      for (const timeline::Span& span : trace.spans) {
        const auto kind = static_cast<std::size_t>(outline.ops.at(span.op).kind);
        total.at(kind) += span.end - span.start;
        seen[kind] = true;
      }
    }
  }
  std::map<std::string, double> means;
  if (steps == 0) return means;
  for (std::size_t kind = 0; kind < total.size(); ++kind) {
    if (!seen[kind]) continue;
    means[std::string{program::name(static_cast<program::OpKind>(kind))}] =
        units::to_seconds(total[kind]).value() / static_cast<double>(steps);
  }
  return means;
}

}  // namespace isoscale::analysis
