// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "program/op.hpp"
#include "results/records/run_data.hpp"
#include "simulate/machine.hpp"

namespace isoscale::analysis::predict {

/// The times of single ops, from the traced steps of a run's points.
struct TracedOps {
  std::vector<simulate::TimedGemm> gemms{};
  std::vector<simulate::TimedLocal> locals{};
  /// Seconds from the time when an op could begin (once the op before it on its stream and those
  /// that it waits for had ended) until it did: mean over the ops of a step, median over steps and
  /// ranks. Absent without traces.
  std::optional<double> gap{};
  /// The factor by which ops that do not communicate take longer while their rank communicates; 1
  /// where none overlapped.
  double compute_slowdown = 1;
  double op_noise = 0;  ///< relative standard deviation of an op about the mean of its shape
};

/// Returns the op times of a run. Only points with steps and traces count whose programs can be
/// built again, since the run file has no shapes. The time of a shape is the mean over those ops of
/// a step that ran without communication, in the median over ranks and steps. If no op ran without
/// communication, it is the time in the step played without communication (SoloTimes), or else the
/// time during communication over the slowdown of other ops. It comes from the points with most
/// ranks that have the shape, so that it includes the effects of ranks on each other's caches and
/// memory. Points whose ranks share cores or have injected faults count only if there are no
/// others.
[[nodiscard]] TracedOps traced_ops(const results::RunData& run);

/// Returns the ok points of a run with steps that count; only the sound ones if there are any.
[[nodiscard]] std::vector<const results::PointData*> stepped_points(const results::RunData& run);

/// The time of collectives in steps over their time alone. A calibration plays calls back to back
/// from their own buffers; in a step the data has just been computed, and compute or idle time
/// between calls affects them.
struct CommunicationInSteps {
  /// The factor by kind, from calls that hardly overlap with the rank's compute. Absent without
  /// such calls.
  std::map<program::OpKind, double> apart{};
  /// The additional factor for calls that overlap with the rank's compute; at least 1.
  double slowdown = 1;
};

/// Compares collectives in the traced steps of `points` (those with at least half the most ranks
/// and with known waits) with their times alone in `measured`. A call lasts from its last member's
/// arrival to its last member's end, which is what the next call waits for.
[[nodiscard]] CommunicationInSteps communication_in_steps(
    const results::RunData& run, const std::vector<const results::PointData*>& points,
    const simulate::Measured& measured);

/// Multiplies the measured times of each kind by its factor in `apart`.
void stretch(simulate::Measured& measured, const std::map<program::OpKind, double>& apart);

}  // namespace isoscale::analysis::predict
