// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include "results/run_data.hpp"
#include "simulate/machine.hpp"

namespace isoscale::analysis {

/// What the traced steps of a run's points say of its ops, one by one.
struct TracedOps {
  std::vector<simulate::TimedGemm> gemms{};
  std::vector<simulate::TimedLocal> locals{};
  /// Seconds from when an op could begin - the one before it on its stream, and those it waits for,
  /// had ended - until it did: mean over the ops of a step, median over steps and ranks. Absent
  /// without traces.
  std::optional<double> gap{};
  /// How much longer ops that do not communicate take while communication of their rank is under
  /// way; 1 where none did.
  double compute_slowdown = 1;
  double op_noise = 0;  ///< relative standard deviation of an op about the mean of its shape
};

/// Of the points of the run that have steps and traces, and whose programs can be made again: the
/// run file has no shapes. A shape's time is the mean over a step of its ops that ran while nothing
/// communicated, in the median over ranks and steps; of shapes that never ran so, the time of the
/// step without communication (SoloTimes); where that was not measured either, the time beside
/// communication over the slowdown of the others. It is taken from the points of most ranks that
/// have the shape: what ranks do to each other's caches and memory is in it. Points of ranks that
/// share cores or have faults put in count only where there are no others.
[[nodiscard]] TracedOps traced_ops(const results::RunData& run);

/// The points of a run that have steps that count, are ok, and sound if any is.
[[nodiscard]] std::vector<const results::PointData*> stepped_points(const results::RunData& run);

}  // namespace isoscale::analysis
