// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "analysis/breakdown/matched_traces.hpp"
#include "program/outline.hpp"
#include "results/records/run_data.hpp"
#include "simulate/simulate.hpp"
#include "units/quantity.hpp"

/// Replays steps with measured compute and copy times on a network that takes no time. For speed,
/// consecutive ops are merged into one, and only one of several ranks that behave alike is
/// replayed.
namespace isoscale::analysis::breakdown {

/// Returns the programs of a point, with consecutive ops merged. They have a single stream if the
/// point's ranks ran all ops on one thread.
[[nodiscard]] simulate::Coarsener coarse_programs(const results::PointData& point);

/// Reduces the mesh to one of each set of alike coordinates along every axis. Two coordinates are
/// alike if no message goes along the axis, and if ranks that differ only in this coordinate have
/// the same program and table of costs. On a network that takes no time, all such ranks run their
/// ops at the same times, so a collective ends at the same time whether one or all of them take
/// part.
[[nodiscard]] simulate::ReducedMesh like_ranks(const program::OutlineSet& set,
                                               const simulate::Costs& costs);

/// The result of a replay: one step in the steady state.
struct Replay {
  /// By rank, the time in which exchanges between stages wait and no other op of the rank runs.
  std::vector<units::Nanoseconds> idle;
  units::Nanoseconds step;  ///< time from one step to the next, of the slowest rank
  std::set<int> assumed;    ///< ranks without a trace, replayed with mean op times of others
};

/// Replays one step. `traces` has at least one trace, and all are usable (they have one span per op
/// with possible times); `programs` is coarse_programs(point). Throws base::Error if a program has
/// no traced rank, or on a deadlock.
[[nodiscard]] Replay replay_on_free_network(const results::PointData& point,
                                            const simulate::Coarsener& programs,
                                            const TraceOfRank& traces);

/// Replays the steps with equally fast ranks, so that only the schedule causes idle time. All ranks
/// with the same program get the op times of the first traced rank among them: the mean time of
/// each op over the steps, scaled by one factor that makes the time per FLOP of the rank's GEMMs
/// equal to that of the median rank. Throws as replay_on_free_network() does.
[[nodiscard]] Replay replay_of_schedule(const results::PointData& point,
                                        const simulate::Coarsener& programs,
                                        const std::vector<TracedStep>& steps);

}  // namespace isoscale::analysis::breakdown
