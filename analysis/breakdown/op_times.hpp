// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/breakdown/traced_steps.hpp"
#include "program/outline.hpp"
#include "results/calibration_data.hpp"
#include "results/run_data.hpp"

/// Times of ops in traced steps beside their breakdown: by kind, of multiplications by shape, of
/// collectives against the same alone, and of messages between pipeline stages.
namespace isoscale::analysis {

/// Seconds that the ops of each kind ("gemm", "cast", "all_reduce", ...) take together in a step,
/// mean over ranks and traced steps. Ops on different streams overlap, so the sum may exceed the
/// step. Empty without traces.
[[nodiscard]] std::map<std::string, double> op_times(const results::PointData& point);

/// The matrix multiplications of one shape in a step, mean over ranks and traced steps.
struct GemmTime {
  program::GemmShape shape;
  double calls = 0;    ///< a rank's in a step; a fraction where ranks play different programs
  double seconds = 0;  ///< all calls of a step together
  double flop = 0;     ///< likewise
};
/// One entry a shape, the one that takes most time first. Empty without traces, and of files before
/// schema 1.6, which have no shapes.
[[nodiscard]] std::vector<GemmTime> gemm_times(const results::PointData& point);

/// The transfer of a kind of collective inside of a step, against the same calls alone.
struct LinkShare {
  std::string op, axes;  ///< "all_reduce", "dp"
  std::string link_class;
  double alone = 0;     ///< seconds that the calibration predicts for its calls of one step
  double measured = 0;  ///< seconds that they transferred for, waiting for members left out
  double share = 0;     ///< alone / measured: 1 = all that the link gives
};

/// Gives one entry for each kind of collective and its axes in the traced steps, mean over ranks
/// and steps. A call is predicted by the run's curve for the library, as many members on as many
/// nodes, the point's element type or else any other one. Kinds of which some call has no such
/// curve are left out, as are those that curves of several link classes could be meant for, and
/// those with a member that was not traced: waiting for it would count.
[[nodiscard]] std::vector<LinkShare> link_shares(const results::RunData& run,
                                                 const results::PointData& point,
                                                 const TracedSteps& traced,
                                                 const results::CalibrationData& calibration);

/// Times that messages between stages took once both sides were there, seconds; one message is one
/// microbatch's activation or its gradient.
struct HandOverTimes {
  double median = 0, p90 = 0;
  std::size_t messages = 0;
};

/// The bubble that a pipeline's schedule promises, and the times that its hand-overs took.
struct PipelineReport {
  /// The share of a step, with stages that are alike, backward twice as long as forward and
  /// messages that take no time: the formula of the schedule (workloads/stack/pipeline.hpp). Absent
  /// where options name no schedule that is known here, as in a file of a newer version.
  std::optional<double> formula_bubble;
  std::optional<HandOverTimes> hand_over;  ///< absent where no message was traced
};

/// Absent for points without stages.
[[nodiscard]] std::optional<PipelineReport> pipeline_report(const results::PointData& point,
                                                            const TracedSteps& traced);
/// The formula alone, as PipelineReport::formula_bubble.
[[nodiscard]] std::optional<double> formula_bubble(const results::PointData& point);

}  // namespace isoscale::analysis
