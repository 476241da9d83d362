// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "program/op.hpp"
#include "results/run_data.hpp"
#include "simulate/machine.hpp"

namespace isoscale::analysis {

/// The times of ops one by one, from the traced steps of a run's points.
struct TracedOps {
  std::vector<simulate::TimedGemm> gemms{};
  std::vector<simulate::TimedLocal> locals{};
  /// Seconds from when an op could begin - the one before it on its stream, and those it waits for,
  /// had ended - until it did: mean over the ops of a step, median over steps and ranks. Absent
  /// without traces.
  std::optional<double> gap{};
  /// The factor by which ops that do not communicate take longer while communication of their rank
  /// is under way; 1 where none did.
  double compute_slowdown = 1;
  double op_noise = 0;  ///< relative standard deviation of an op about the mean of its shape
};

/// Reads the points of the run that have steps and traces, and whose programs can be made again:
/// the run file has no shapes. A shape's time is the mean over a step of its ops that ran while
/// nothing communicated, in the median over ranks and steps; of shapes that never ran so, the time
/// of the step without communication (SoloTimes); where that was not measured either, the time
/// beside communication over the slowdown of the others. It is taken from the points of most ranks
/// that have the shape: what ranks do to each other's caches and memory is in it. Points of ranks
/// that share cores or have faults put in count only where there are no others.
[[nodiscard]] TracedOps traced_ops(const results::RunData& run);

/// The points of a run that have steps that count, are ok, and sound if any is.
[[nodiscard]] std::vector<const results::PointData*> stepped_points(const results::RunData& run);

/// The time of collectives in steps over their time alone. A calibration plays one call after the
/// other from memory of its own; in a step what is sent has just been computed, and what computes
/// or sleeps in between has its cost.
struct CommunicationInSteps {
  /// The factor by kind, from calls that the rank computed next to nothing beside. Absent without
  /// such calls.
  std::map<program::OpKind, double> apart{};
  /// The further factor of calls that the rank computes beside; at least 1.
  double slowdown = 1;
};

/// Compares the traced steps of `points`, those of at least half the most ranks whose waits are
/// known: a call's time is from its last member's arrival to its last member's end, which is what
/// the next call waits for. Alone is what `measured` has.
[[nodiscard]] CommunicationInSteps communication_in_steps(
    const results::RunData& run, const std::vector<const results::PointData*>& points,
    const simulate::Measured& measured);

/// The same measurements with the times of each kind `apart` times as long.
void stretch(simulate::Measured& measured, const std::map<program::OpKind, double>& apart);

}  // namespace isoscale::analysis
