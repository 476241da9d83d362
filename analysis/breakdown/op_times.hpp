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

/// Reports times of ops in traced steps, in addition to their breakdown: by kind, of
/// multiplications by shape, of collectives compared with the same calls alone, and of messages
/// between pipeline stages.
namespace isoscale::analysis {

/// Returns the seconds that the ops of each kind ("gemm", "cast", "all_reduce", ...) take together
/// in a step, mean over ranks and traced steps. Ops on different streams overlap, so the sum may
/// exceed the step. Empty without traces.
[[nodiscard]] std::map<std::string, double> op_times(const results::PointData& point);

/// The matrix multiplications of one shape in a step, mean over ranks and traced steps.
struct GemmTime {
  program::GemmShape shape;
  double calls = 0;    ///< per rank and step; a fraction where ranks play different programs
  double seconds = 0;  ///< all calls of a step together
  double flop = 0;     ///< all calls of a step together
};
/// Returns one entry for each shape, ordered by time, the largest first. Empty without traces, and
/// for files before schema 1.6, which have no shapes.
[[nodiscard]] std::vector<GemmTime> gemm_times(const results::PointData& point);

/// The transfer of one kind of collective within steps, compared with the same calls alone.
struct LinkShare {
  std::string op, axes;  ///< "all_reduce", "dp"
  std::string link_class;
  double alone = 0;     ///< seconds that the calibration predicts for its calls of one step
  double measured = 0;  ///< seconds that they transferred for, without waiting for members
  double share = 0;     ///< alone / measured: 1 = as fast as alone
};

/// Returns one entry for each kind of collective and its axes in the traced steps, mean over ranks
/// and steps. The time of a call alone comes from the run's curve for the library with the same
/// numbers of members and nodes, for the point's element type or else any other one. Three kinds of
/// collectives are left out: those with a call that has no such curve, those with curves of several
/// link classes, and those with a member that was not traced, since waiting for it would count as
/// transfer.
[[nodiscard]] std::vector<LinkShare> link_shares(const results::RunData& run,
                                                 const results::PointData& point,
                                                 const TracedSteps& traced,
                                                 const results::CalibrationData& calibration);

/// The times that messages between stages took once both sides had arrived, in seconds. One message
/// is the activation of one microbatch or its gradient.
struct HandOverTimes {
  double median = 0, p90 = 0;
  std::size_t messages = 0;
};

/// The ideal bubble of a pipeline's schedule, and the times of its hand-overs between stages.
struct PipelineReport {
  /// The bubble as a share of a step whose stages are alike, whose backward takes twice as long as
  /// forward and whose messages take no time: the formula of the schedule
  /// (workloads/stack/pipeline.hpp). Absent where the options name no schedule that is known here,
  /// as in a file of a newer version.
  std::optional<double> formula_bubble;
  std::optional<HandOverTimes> hand_over;  ///< absent where no message was traced
};

/// Returns the report on a point's pipeline; absent for points without pipeline stages.
[[nodiscard]] std::optional<PipelineReport> pipeline_report(const results::PointData& point,
                                                            const TracedSteps& traced);
/// Returns only the formula's value, see PipelineReport::formula_bubble.
[[nodiscard]] std::optional<double> formula_bubble(const results::PointData& point);

}  // namespace isoscale::analysis
