// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/traces/trace_waits.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include "analysis/breakdown/traced_steps.hpp"

namespace isoscale::analysis {
namespace {

/// Whom an op waits for, and `rank` itself.
std::vector<int> partners_of(const results::PointData& point, int rank,
                             const program::OutlineOp& op) {
  if (op.kind != program::OpKind::exchange) return mesh::group_members(point.mesh, rank, op.axes);
  std::vector<int> partners{rank};
  for (const auto& transfer : point.outline.of(rank).transfers_of(op)) {
    partners.push_back(mesh::neighbour(point.mesh, rank, transfer.axis, transfer.offset));
  }
  return partners;
}

}  // namespace

TraceWaits::TraceWaits(const results::PointData& point)
    : point_(point), steps_(traced_steps(point)) {
  for (const TracedStep& step : steps_.steps) {
    for (const timeline::StepTrace* const trace : step.traces) {
      if (trace != nullptr) step_of_[trace] = &step;
    }
  }
}

std::optional<units::Nanoseconds> TraceWaits::of(const timeline::StepTrace& trace,
                                                 std::uint32_t op) const {
  const program::OutlineOp& at = point_.outline.of(trace.rank).ops[op];
  const auto found = step_of_.find(&trace);
  if (!program::communicates(at.kind) || found == step_of_.end()) return std::nullopt;
  if (steps_.unmatched.contains(trace.rank)) return std::nullopt;
  const TracedStep& step = *found->second;
  const std::vector<int> partners = partners_of(point_, trace.rank, at);
  if (partners.size() < 2 || !all_known(step, partners)) return std::nullopt;
  const timeline::Span& span = trace.spans[op];
  return span.end - span.start -
         transfer_time(span, step.waits[static_cast<std::size_t>(trace.rank)][op]);
}

}  // namespace isoscale::analysis
