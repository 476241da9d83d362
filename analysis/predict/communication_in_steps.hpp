// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <vector>

#include "program/op.hpp"
#include "results/run_data.hpp"
#include "simulate/machine.hpp"

namespace isoscale::analysis {

/// What collectives take in steps over what they take alone. A calibration plays one call after the
/// other from memory of its own; in a step what is sent has just been computed, and what computes
/// or sleeps in between has its cost.
struct CommunicationInSteps {
  /// By kind, of calls that the rank computed next to nothing beside. Absent without such calls.
  std::map<program::OpKind, double> apart{};
  /// How much longer still calls take that the rank computes beside; at least 1.
  double slowdown = 1;
};

/// From the traced steps of `points`, those of at least half the most ranks whose waits are known:
/// a call's time is from its last member's arrival to its last member's end, which is what the next
/// call waits for. Alone is what `measured` has.
[[nodiscard]] CommunicationInSteps communication_in_steps(
    const results::RunData& run, const std::vector<const results::PointData*>& points,
    const simulate::Measured& measured);

/// The same measurements with the times of each kind `apart` times as long.
void stretch(simulate::Measured& measured, const std::map<program::OpKind, double>& apart);

}  // namespace isoscale::analysis
