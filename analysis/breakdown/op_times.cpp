// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/op_times.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/breakdown/traced_steps.hpp"
#include "program/op.hpp"
#include "units/quantity.hpp"

namespace isoscale::analysis {
namespace {

using program::OpKind;

/// Calls visit(outline, trace) for each rank of each traced step that counts and has a usable
/// trace; returns the number of calls.
template <class Visit>
std::size_t for_each_trace(const results::PointData& point, Visit&& visit) {
  std::size_t traces = 0;
  if (!outline_problem(point).empty()) return traces;
  for (const timeline::Timeline& timeline : point.traces) {
    if (!step_counts(point, timeline)) continue;
    for (const timeline::StepTrace& trace : timeline.ranks) {
      if (check_trace(point, trace) != TraceState::usable) continue;
      visit(point.outline.of(trace.rank), trace);
      ++traces;
    }
  }
  return traces;
}

}  // namespace

std::map<std::string, double> op_times(const results::PointData& point) {
  std::array<units::Nanoseconds, program::op_kind_count> total{};
  std::array<bool, program::op_kind_count> seen{};
  const std::size_t traces =
      for_each_trace(point, [&](const program::Outline& outline, const timeline::StepTrace& trace) {
        for (const timeline::Span& span : trace.spans) {
          const auto kind = static_cast<std::size_t>(outline.ops.at(span.op).kind);
          total.at(kind) += span.end - span.start;
          seen[kind] = true;
        }
      });
  std::map<std::string, double> means;
  if (traces == 0) return means;
  for (std::size_t kind = 0; kind < total.size(); ++kind) {
    if (!seen[kind]) continue;
    means[std::string{program::name(static_cast<program::OpKind>(kind))}] =
        units::to_seconds(total[kind]).value() / static_cast<double>(traces);
  }
  return means;
}

std::vector<GemmTime> gemm_times(const results::PointData& point) {
  std::map<program::GemmShape, GemmTime> of_shape;
  const std::size_t traces =
      for_each_trace(point, [&](const program::Outline& outline, const timeline::StepTrace& trace) {
        for (const timeline::Span& span : trace.spans) {
          const program::OutlineOp& op = outline.ops.at(span.op);
          if (op.gemm == program::GemmShape{}) continue;
          GemmTime& sum = of_shape[op.gemm];
          sum.calls += 1;
          sum.seconds += units::to_seconds(span.end - span.start).value();
          sum.flop += op.flop;
        }
      });
  std::vector<GemmTime> times;
  for (auto& [shape, sum] : of_shape) {
    const auto each = static_cast<double>(traces);
    times.push_back({.shape = shape,
                     .calls = sum.calls / each,
                     .seconds = sum.seconds / each,
                     .flop = sum.flop / each});
  }
  std::ranges::stable_sort(times, std::ranges::greater{}, &GemmTime::seconds);
  return times;
}

}  // namespace isoscale::analysis
