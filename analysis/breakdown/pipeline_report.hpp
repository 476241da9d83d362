// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>

#include "analysis/breakdown/traced_steps.hpp"
#include "results/records/run_data.hpp"

/// Computes the bubble that a pipeline's schedule has in theory, and the times of messages between
/// stages.
namespace isoscale::analysis::breakdown {

/// The times that messages between stages took once both sides had arrived, in seconds. One message
/// is the activation of one microbatch or its gradient.
struct HandOverTimes {
  double median = 0, p90 = 0;
  std::size_t messages = 0;
};

/// The ideal bubble of a pipeline's schedule, and the times of the messages between stages.
struct PipelineReport {
  /// The bubble as a share of the step by the formula of the schedule
  /// (workloads/stack/pipeline.hpp), which assumes that all stages take equally long, that backward
  /// takes twice as long as forward, and that messages take no time. Absent if this version does
  /// not know the schedule, or if the number of microbatches is not known.
  std::optional<double> formula_bubble;
  /// Absent if no rank that receives messages has both a trace and an aligned clock.
  std::optional<HandOverTimes> hand_over;
};

/// Returns the report on a point's pipeline; absent for points without pipeline stages.
[[nodiscard]] std::optional<PipelineReport> pipeline_report(const results::PointData& point,
                                                            const TracedSteps& traced);
/// Returns PipelineReport::formula_bubble alone; absent for points without pipeline stages, too.
[[nodiscard]] std::optional<double> formula_bubble(const results::PointData& point);

}  // namespace isoscale::analysis::breakdown
