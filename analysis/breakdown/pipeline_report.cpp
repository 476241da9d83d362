// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/pipeline_report.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "program/op.hpp"
#include "program/outline.hpp"
#include "results/records/point_facts.hpp"
#include "units/quantity.hpp"
#include "workloads/stack/pipeline.hpp"

namespace isoscale::analysis::breakdown {
namespace {

/// Returns an option that is a count; 0 if it is not a whole number from 1 to the largest int.
int count_of(const results::PointData& point, const std::string& key) {
  const double number = results::count_in(point.options, key).value_or(0);
  return number <= std::numeric_limits<int>::max() ? static_cast<int>(number) : 0;
}

bool receives_from_a_stage(const program::Outline& outline, const program::OutlineOp& op) {
  return program::between_stages(op) &&
         std::ranges::any_of(outline.transfers_of(op),
                             [](const program::OutlineTransfer& transfer) {
                               return transfer.axis == mesh::Axis::pp &&
                                      transfer.direction == program::Direction::receive;
                             });
}

std::optional<HandOverTimes> hand_over_times(const results::PointData& point,
                                             const TracedSteps& traced) {
  std::vector<double> seconds;
  for (const TracedStep& step : traced.steps) {
    for (std::size_t rank = 0; rank < step.traces.size(); ++rank) {
      if (step.traces[rank] == nullptr || step.waits[rank].empty()) continue;
      const program::Outline& outline = point.outline.of(static_cast<int>(rank));
      for (const timeline::Span& span : step.traces[rank]->spans) {
        if (!receives_from_a_stage(outline, outline.ops[span.op])) continue;
        const units::Nanoseconds busy = transfer_time(span, step.waits[rank][span.op]);
        seconds.push_back(units::to_seconds(busy).value());
      }
    }
  }
  if (seconds.empty()) return std::nullopt;
  std::ranges::sort(seconds);
  const std::size_t last = seconds.size() - 1;
  return HandOverTimes{.median = (seconds[last / 2] + seconds[(last + 1) / 2]) / 2,
                       .p90 = seconds[last * 9 / 10],
                       .messages = seconds.size()};
}

}  // namespace

std::optional<double> formula_bubble(const results::PointData& point) {
  const auto schedule = point.options.find("schedule");
  const int microbatches = count_of(point, "microbatches");
  if (schedule == point.options.end() || microbatches == 0 || point.mesh.pp < 2) {
    return std::nullopt;
  }
  using workloads::stack::Schedule, workloads::stack::schedule_names;
  const auto name = std::ranges::find(schedule_names, schedule->second);
  if (name == schedule_names.end()) return std::nullopt;
  workloads::stack::Pipeline pipeline{
      .schedule = static_cast<Schedule>(name - schedule_names.begin()),
      .stages = point.mesh.pp,
      .microbatches = microbatches};
  if (pipeline.schedule == Schedule::interleaved) {
    pipeline.chunks = std::max(1, count_of(point, "v"));
  }
  const double idle = workloads::stack::ideal_bubble(pipeline);  // idle time / compute time
  return idle / (1 + idle);
}

std::optional<PipelineReport> pipeline_report(const results::PointData& point,
                                              const TracedSteps& traced) {
  if (point.mesh.pp < 2) return std::nullopt;
  return PipelineReport{.formula_bubble = formula_bubble(point),
                        .hand_over = hand_over_times(point, traced)};
}

}  // namespace isoscale::analysis::breakdown
