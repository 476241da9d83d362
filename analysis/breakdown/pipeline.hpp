// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>

#include "analysis/breakdown/traced_steps.hpp"
#include "results/run_data.hpp"

namespace isoscale::analysis {

/// How long messages between stages took once both sides were there, seconds; one message is one
/// microbatch's activation or its gradient.
struct HandOverTimes {
  double median = 0, p90 = 0;
  std::size_t messages = 0;
};

/// What a pipeline's schedule promises, and what its hand-overs took.
struct PipelineReport {
  /// Of a step, with stages that are alike, backward twice as long as forward and messages that
  /// take no time: the formula of the schedule (workloads/stack/pipeline.hpp). Absent where options
  /// name no schedule that is known here, as in a file of a newer version.
  std::optional<double> formula_bubble;
  std::optional<HandOverTimes> hand_over;  ///< absent where no message was traced
};

/// Absent for points without stages.
[[nodiscard]] std::optional<PipelineReport> pipeline_report(const results::PointData& point,
                                                            const TracedSteps& traced);
/// The formula alone, as PipelineReport::formula_bubble.
[[nodiscard]] std::optional<double> formula_bubble(const results::PointData& point);

}  // namespace isoscale::analysis
