// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <set>
#include <vector>

#include "analysis/breakdown/matching.hpp"
#include "results/run_data.hpp"
#include "units/quantity.hpp"

namespace isoscale::analysis {

/// A step played again with the measured times of its compute and copy ops on a network that takes
/// no time.
struct Replay {
  std::vector<units::Nanoseconds> idle;  ///< per rank, of one step in the steady state
  units::Nanoseconds step;               ///< from one step to the next, slowest rank
  std::set<int> assumed;  ///< ranks without a trace; given the mean op times of like ranks
};

/// `traces` has at least one trace and has passed check_trace. Throws base::Error when no rank with
/// some program was traced, or when the programs do not play to their end.
[[nodiscard]] Replay replay_on_free_network(const results::PointData& point,
                                            const TraceOfRank& traces);

}  // namespace isoscale::analysis
