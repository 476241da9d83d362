// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "analysis/breakdown/matching.hpp"
#include "results/run_data.hpp"
#include "units/quantity.hpp"

namespace isoscale::analysis {

/// One traced step that counts.
struct TracedStep {
  std::uint32_t step = 0;  ///< number among all steps of the point
  TraceOfRank traces{};    ///< that passed check_trace; not owned
  /// [rank][op]: how long a communication op waited for its last known partner; 0 for all other
  /// ops, and where it is no longer than the clocks of the ranks may be apart. Empty for ranks
  /// without a trace.
  std::vector<std::vector<units::Nanoseconds>> waits{};
  std::vector<std::vector<std::uint32_t>> instance{};  ///< as of Arrivals
  std::uint32_t instances = 0;
};

/// The traced steps of a point, and what could not be said of them.
struct TracedSteps {
  std::vector<TracedStep> steps;
  std::set<int> broken;       ///< ranks with a trace that is no use
  std::set<int> unaligned;    ///< ranks whose clock cannot be set against the others'
  std::set<int> unseen;       ///< partners of traced ranks that have no trace
  std::set<int> unmatched;    ///< ranks with a message that no op of the partner takes
  bool sees_messages = true;  ///< false: some exchange has a partner that is not known
  double clock_error = 0;     ///< seconds; aligned ranks' times may be this far apart

  /// Whether every wait is known: no partner is missing, none has a clock of its own.
  [[nodiscard]] bool knows_waits() const {
    return unseen.empty() && unaligned.empty() && unmatched.empty();
  }
  /// Likewise of exchanges alone.
  [[nodiscard]] bool knows_messages() const {
    return sees_messages && unaligned.empty() && unmatched.empty();
  }
};

/// `point` has no outline_problem and outlives the result.
[[nodiscard]] TracedSteps traced_steps(const results::PointData& point);

}  // namespace isoscale::analysis
