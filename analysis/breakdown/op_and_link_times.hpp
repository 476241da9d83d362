// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/breakdown/matched_traces.hpp"
#include "program/outline.hpp"
#include "results/records/calibration_data.hpp"
#include "results/records/run_data.hpp"

/// Evaluates the times of ops in traced steps: of all ops by kind, of GEMMs by shape, of
/// collectives compared with the same calls while nothing else runs, and of messages between
/// pipeline stages. Also computes the ideal bubble of a pipeline's schedule.
namespace isoscale::analysis::breakdown {

/// Returns for each kind of op ("gemm", "cast", "all_reduce", ...) the seconds that its ops take
/// together in a step; mean over ranks and traced steps. Ops on different streams overlap, so the
/// sum over all kinds may exceed the step. Empty without usable traces.
[[nodiscard]] std::map<std::string, double> op_times(const results::PointData& point);

/// The GEMMs of one shape in a step; mean over ranks and traced steps.
struct GemmTime {
  program::GemmShape shape;
  double calls = 0;    ///< per rank and step; not an integer if ranks run different programs
  double seconds = 0;  ///< all calls of a step together
  double flop = 0;     ///< all calls of a step together
};
/// Returns one entry for each shape of GEMM, ordered by falling time. Empty without usable traces,
/// and for files older than schema 1.6, which have no shapes.
[[nodiscard]] std::vector<GemmTime> gemm_times(const results::PointData& point);

/// The transfer time of one kind of collective, in a step and for the same calls run alone.
struct LinkShare {
  std::string op, axes;  ///< "all_reduce", "dp"
  std::string link_class;
  double alone = 0;     ///< seconds that the calibration predicts for the calls of one step
  double measured = 0;  ///< seconds of transfer in one step, without the waiting for members
  double share = 0;     ///< alone / measured: 1 = as fast as alone
};

/// Returns one entry for each kind of collective and its axes in the traced steps; times are means
/// over ranks and steps. The time of a call alone comes from the run's calibration curve for the
/// communication library with the same numbers of members and nodes, preferably for the point's
/// element type. A collective is left out if some call has no such curve, if the curves of a call
/// are of several link classes, or if a member has no trace or no aligned clock, since waiting for
/// this member would count as transfer. Barriers and groups of one rank are left out too. Empty
/// without traced steps and without calibration.
[[nodiscard]] std::vector<LinkShare> link_shares(const results::RunData& run,
                                                 const results::PointData& point,
                                                 const TracedSteps& traced,
                                                 const results::CalibrationData& calibration);

/// The times that messages between stages took once both sides had arrived, in seconds. One message
/// is the activation, or the gradient, of one microbatch.
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
/// Returns PipelineReport::formula_bubble alone; also absent for points without pipeline stages.
[[nodiscard]] std::optional<double> formula_bubble(const results::PointData& point);

}  // namespace isoscale::analysis::breakdown
