// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/traced_steps.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "analysis/breakdown/parallel.hpp"
#include "analysis/breakdown/trace_check.hpp"

namespace isoscale::analysis {
namespace {

using units::Nanoseconds;

TracedStep select(const results::PointData& point, const timeline::Timeline& timeline,
                  std::set<int>& broken) {
  TracedStep step{.traces = TraceOfRank(static_cast<std::size_t>(point.ranks), nullptr)};
  for (const timeline::StepTrace& trace : timeline.ranks) {
    if (check_trace(point, trace) == TraceState::usable) {
      step.traces[static_cast<std::size_t>(trace.rank)] = &trace;
      step.step = trace.step;
    } else {
      broken.insert(trace.rank);
    }
  }
  return step;
}

bool is_traced(const TracedStep& step) {
  return std::ranges::any_of(step.traces, [](const auto* trace) { return trace != nullptr; });
}

/// Finds the traced ranks whose clocks cannot be compared, and how far those of the others may be
/// apart: each is off by its own error.
void judge_clocks(const results::PointData& point, TracedSteps& result) {
  double worst = 0, second = 0;
  for (int rank = 0; rank < point.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    const bool traced = std::ranges::any_of(
        result.steps, [at](const TracedStep& step) { return step.traces[at] != nullptr; });
    if (!traced) continue;
    if (!aligned(point, rank)) {
      result.unaligned.insert(rank);
    } else if (point.ranks > 1) {
      const double error = point.clock_error[at];
      second = std::max(second, std::min(worst, error));
      worst = std::max(worst, error);
    }
  }
  result.clock_error = worst + second;
}

/// Fills the waits of a step from the arrivals of those whose clocks can be compared.
Arrivals add_waits(const results::PointData& point, const TracedSteps& all, TracedStep& step) {
  TraceOfRank comparable = step.traces;
  for (const int rank : all.unaligned) comparable[static_cast<std::size_t>(rank)] = nullptr;
  Arrivals arrivals = last_arrivals(point.outline, comparable);
  const Nanoseconds error = units::to_nanoseconds(units::Seconds{all.clock_error});
  step.waits.resize(step.traces.size());
  for (std::size_t rank = 0; rank < step.traces.size(); ++rank) {
    if (comparable[rank] == nullptr) continue;
    const auto& last = arrivals.last[rank];
    auto& waits = step.waits[rank];
    waits.resize(last.size());
    for (std::size_t op = 0; op < last.size(); ++op) {
      const Nanoseconds wait = last[op] - comparable[rank]->spans[op].start;
      if (wait > error) waits[op] = wait;
    }
  }
  step.instance = std::move(arrivals.instance);
  step.instances = arrivals.instances;
  return arrivals;
}

}  // namespace

TracedSteps traced_steps(const results::PointData& point) {
  TracedSteps result;
  for (const timeline::Timeline& timeline : point.traces) {
    if (!step_counts(point, timeline)) continue;
    TracedStep step = select(point, timeline, result.broken);
    if (is_traced(step)) result.steps.push_back(std::move(step));
  }
  judge_clocks(point, result);
  std::vector<Arrivals> arrivals(result.steps.size());
  in_parallel(result.steps.size(),
              [&](std::size_t i) { arrivals[i] = add_waits(point, result, result.steps[i]); });
  for (Arrivals& of_step : arrivals) {
    result.unseen.merge(of_step.unseen);
    result.unmatched.merge(of_step.unmatched);
    result.sees_messages = result.sees_messages && of_step.sees_messages;
  }
  return result;
}

}  // namespace isoscale::analysis
