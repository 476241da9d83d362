// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "program/outline.hpp"
#include "results/records/run_data.hpp"
#include "simulate/machine.hpp"
#include "timeline/timeline.hpp"

namespace isoscale::analysis::predict {

/// The times of single ops, from the traced steps of a run's points.
struct TracedOps {
  std::vector<simulate::TimedGemm> gemms{};
  std::vector<simulate::TimedLocal> locals{};
  /// The seconds between the time when an op could begin (the previous op on its stream and all ops
  /// that it waits for had ended) and the time when it began: mean over the ops of a step, median
  /// over steps and ranks. Absent without traces.
  std::optional<double> gap{};
  /// The factor by which ops other than communication take longer while their rank communicates; 1
  /// if no such op overlapped with communication.
  double compute_slowdown = 1;
  double op_noise = 0;  ///< relative standard deviation of an op about the mean of its shape
};

/// Returns the op times of a run. Points count only if they have steps and traces and their
/// programs can be built again, since the run file has no shapes. The time of a shape is the mean
/// over those ops of a step that ran without communication, then the median over ranks and steps.
/// If no op ran without communication, it is the time in a step that was run without communication
/// (SoloTimes), or else the time during communication divided by the slowdown of other ops. It
/// comes from the points with most ranks that have the shape, so that it includes the effects of
/// ranks on each other's caches and memory. Points whose ranks share cores or have injected faults
/// count only if there are no others.
[[nodiscard]] TracedOps traced_ops(const results::RunData& run);

/// Returns the ok points of a run with steps that count. Points whose ranks share cores or a GPU or
/// have injected faults are returned only if there are no others.
[[nodiscard]] std::vector<const results::PointData*> stepped_points(const results::RunData& run);

/// Returns the times at which a rank ran the ops that `counts` accepts.
template <class Counts>
[[nodiscard]] timeline::IntervalSet times_of(const program::Outline& outline,
                                             const timeline::StepTrace& trace,
                                             const Counts& counts) {
  std::vector<timeline::Interval> intervals;
  for (const timeline::Span& span : trace.spans) {
    if (counts(outline.ops[span.op])) intervals.push_back({span.start, span.end});
  }
  return timeline::normalise(std::move(intervals));
}

/// The ratio of the time of collectives in steps to their time alone. The two differ since a
/// calibration repeats calls back to back on their own buffers, while in a step the data has just
/// been computed, and compute or idle time lies between calls.
struct CommunicationInSteps {
  /// The factor for each kind, from calls that hardly overlap with the rank's compute. A kind
  /// without such calls is absent.
  std::map<program::OpKind, double> apart{};
  /// The additional factor for calls that overlap with the rank's compute; at least 1.
  double slowdown = 1;
};

/// Compares collectives in the traced steps of `points` with their times alone in `measured`. It
/// uses the points with at least half of the largest rank count and with known waits. A call lasts
/// from its last member's arrival to its last member's end, since the next call waits for this end.
[[nodiscard]] CommunicationInSteps communication_in_steps(
    const results::RunData& run, const std::vector<const results::PointData*>& points,
    const simulate::Measured& measured);

/// Multiplies the measured times of each kind by its factor in `apart`.
void stretch(simulate::Measured& measured, const std::map<program::OpKind, double>& apart);

}  // namespace isoscale::analysis::predict
