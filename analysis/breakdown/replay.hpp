// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <set>
#include <vector>

#include "analysis/breakdown/condensed.hpp"
#include "analysis/breakdown/matching.hpp"
#include "analysis/breakdown/traced_steps.hpp"
#include "results/run_data.hpp"
#include "units/quantity.hpp"

namespace isoscale::analysis {

/// A step played again with the measured times of its compute and copy ops on a network that takes
/// no time; of one step in the steady state.
struct Replay {
  /// Per rank: how long its exchanges wait for their partners while nothing else of it runs.
  std::vector<units::Nanoseconds> idle;
  units::Nanoseconds step;  ///< from one step to the next, slowest rank
  std::set<int> assumed;    ///< ranks without a trace; given the mean op times of like ranks
};

/// `traces` has at least one trace and has passed check_trace. Throws base::Error when no rank with
/// some program was traced, or when the programs do not play to their end. `condensed` is of the
/// point's programs.
[[nodiscard]] Replay replay_on_free_network(const results::PointData& point,
                                            const Condensed& condensed, const TraceOfRank& traces);

/// The same with ranks that are all alike, so that what is idle is the schedule's doing alone: each
/// op has its mean time over the steps, and all ops of a rank are scaled by one factor that gives
/// its GEMMs the middle rank's time per FLOP.
[[nodiscard]] Replay replay_of_schedule(const results::PointData& point, const Condensed& condensed,
                                        const std::vector<TracedStep>& steps);

}  // namespace isoscale::analysis
