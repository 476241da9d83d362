// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "analysis/breakdown/traced_steps.hpp"
#include "program/match_table.hpp"
#include "program/outline.hpp"
#include "results/records/run_data.hpp"
#include "simulate/simulate.hpp"
#include "units/quantity.hpp"

/// Replays steps with measured compute and copy times on a network that takes no time. Programs are
/// condensed, and ranks that are alike are played once.
namespace isoscale::analysis::breakdown {

/// The programs of a step with each run of compute and copy ops merged into one op, except where
/// another op waits for an op inside of the run. All communication ops begin and end at the same
/// times as in the whole programs, which have many times as many ops.
class Condensed {
 public:
  Condensed(const program::OutlineSet& whole, program::Folding folding);

  [[nodiscard]] const program::OutlineSet& set() const { return set_; }
  /// Returns the costs of the condensed ops from those of the whole programs; table_of_rank stays
  /// the same.
  [[nodiscard]] simulate::Costs costs(const simulate::Costs& whole) const;

 private:
  void add(const program::Outline& whole, program::Folding folding);

  program::OutlineSet set_;
  std::vector<std::vector<std::uint32_t>> place_;  ///< [outline][op]: its condensed op
};

/// A mesh reduced to one coordinate for each set of alike coordinates (see like_ranks).
struct LikeRanks {
  program::OutlineSet set;
  simulate::Costs costs;
  std::vector<std::uint32_t> rank;  ///< by rank of the whole mesh: the like one in `set`
};

/// Keeps one of each set of alike coordinates of an axis. Coordinates are alike if no message goes
/// along the axis, and if ranks that differ only in them have the same outline and table of costs.
/// On a network where the number of members costs nothing, such ranks play at the same times, and a
/// collective ends at the same time with one of them as with all. `set` and `costs` have passed
/// check_trace.
[[nodiscard]] LikeRanks like_ranks(const program::OutlineSet& set, simulate::Costs costs);

/// The result of a replay with measured compute and copy times on a network that takes no time, for
/// one step in the steady state.
struct Replay {
  /// By rank: how long its exchanges wait for their partners while nothing else of the rank runs.
  std::vector<units::Nanoseconds> idle;
  units::Nanoseconds step;  ///< time from one step to the next, slowest rank
  std::set<int> assumed;    ///< ranks without a trace; given the mean op times of like ranks
};

/// Replays one step. `traces` has at least one trace and has passed check_trace; `condensed` is
/// made from the point's programs. Throws base::Error when a program has no traced rank, or when
/// the programs do not play to their end.
[[nodiscard]] Replay replay_on_free_network(const results::PointData& point,
                                            const Condensed& condensed, const TraceOfRank& traces);

/// Replays the steps with ranks that are all alike, so that only the schedule causes idle time:
/// each op has its mean time over the steps, and all ops of a rank are scaled by one factor that
/// gives its GEMMs the median rank's time per FLOP.
[[nodiscard]] Replay replay_of_schedule(const results::PointData& point, const Condensed& condensed,
                                        const std::vector<TracedStep>& steps);

}  // namespace isoscale::analysis::breakdown
