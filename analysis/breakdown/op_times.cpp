// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/op_times.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "analysis/breakdown/traced_steps.hpp"
#include "program/op.hpp"
#include "units/quantity.hpp"

namespace isoscale::analysis::breakdown {
namespace {

/// Calls visit(op, span) for each op of each usable trace of the steps that count. Returns the
/// number of these traces.
template <class Visit>
std::size_t for_each_op(const results::PointData& point, Visit&& visit) {
  std::size_t count = 0;
  for (const auto& [rank, traces] : usable_traces(point)) {
    const program::Outline& outline = point.outline.of(rank);
    for (const timeline::StepTrace* const trace : traces) {
      for (const timeline::Span& span : trace->spans) visit(outline.ops.at(span.op), span);
    }
    count += traces.size();
  }
  return count;
}

}  // namespace

std::map<std::string, double> op_times(const results::PointData& point) {
  std::map<program::OpKind, units::Nanoseconds> total;
  const std::size_t traces =
      for_each_op(point, [&](const program::OutlineOp& op, const timeline::Span& span) {
        total[op.kind] += span.end - span.start;
      });
  std::map<std::string, double> means;
  for (const auto& [kind, time] : total) {
    means[std::string{program::name(kind)}] =
        units::to_seconds(time).value() / static_cast<double>(traces);
  }
  return means;
}

std::vector<GemmTime> gemm_times(const results::PointData& point) {
  std::map<program::GemmShape, GemmTime> of_shape;
  const std::size_t traces =
      for_each_op(point, [&](const program::OutlineOp& op, const timeline::Span& span) {
        if (op.gemm == program::GemmShape{}) return;
        GemmTime& sum = of_shape[op.gemm];
        sum.calls += 1;
        sum.seconds += units::to_seconds(span.end - span.start).value();
        sum.flop += op.flop;
      });
  std::vector<GemmTime> times;
  for (const auto& [shape, sum] : of_shape) {
    const auto each = static_cast<double>(traces);
    times.push_back({.shape = shape,
                     .calls = sum.calls / each,
                     .seconds = sum.seconds / each,
                     .flop = sum.flop / each});
  }
  std::ranges::stable_sort(times, std::ranges::greater{}, &GemmTime::seconds);
  return times;
}

}  // namespace isoscale::analysis::breakdown
