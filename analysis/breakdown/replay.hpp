// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "analysis/breakdown/traced_steps.hpp"
#include "program/match_table.hpp"
#include "program/outline.hpp"
#include "results/run_data.hpp"
#include "simulate/simulate.hpp"
#include "units/quantity.hpp"

/// Plays steps again with measured times on a network that takes no time. Programs are condensed,
/// and ranks that are alike are played once.
namespace isoscale::analysis {

/// The programs of a step with each run of compute and copy ops put into one op, where nothing
/// waits for one before the last of them. Such a program begins and ends every communication op at
/// the same time as the whole one, with a fraction of the ops.
class Condensed {
 public:
  Condensed(const program::OutlineSet& whole, program::Folding folding);

  [[nodiscard]] const program::OutlineSet& set() const { return set_; }
  /// The times of its ops from those of the whole programs; table_of_rank stays what it is.
  [[nodiscard]] simulate::Costs costs(const simulate::Costs& whole) const;

 private:
  void add(const program::Outline& whole, program::Folding folding);

  program::OutlineSet set_;
  std::vector<std::vector<std::uint32_t>> place_;  ///< [outline][op]: its op of the condensed one
};

/// A mesh with one coordinate for all that are alike.
struct LikeRanks {
  program::OutlineSet set;
  simulate::Costs costs;
  std::vector<std::uint32_t> rank;  ///< of each rank of the whole mesh, the one in `set` like it
};

/// Two coordinates of an axis are alike when no message goes along it, and ranks that differ in
/// nothing else have one outline and one table of costs: exchanging them changes nothing, so that
/// on a network where the number of members costs nothing both play at the same times, and a
/// collective ends when it would with one of them. `set` and `costs` have passed check_trace.
[[nodiscard]] LikeRanks like_ranks(const program::OutlineSet& set, simulate::Costs costs);

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
