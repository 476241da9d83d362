// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/op_time.hpp"

#include <cstddef>

#include "units/quantity.hpp"

namespace isoscale::analysis {

std::map<std::string, double> op_times(const results::PointData& point) {
  std::map<std::string, double> total;
  std::size_t steps = 0;
  for (const timeline::Timeline& timeline : point.traces) {
    for (const timeline::StepTrace& trace : timeline.ranks) {
      const program::Outline& outline = point.outline.of(trace.rank);
      ++steps;
      for (const timeline::Span& span : trace.spans) {
        total[std::string{program::name(outline.ops.at(span.op).kind)}] +=
            units::to_seconds(span.end - span.start).value();
      }
    }
  }
  for (auto& [kind, seconds] : total) seconds /= static_cast<double>(steps);
  return total;
}

}  // namespace isoscale::analysis
