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

/// Replays steps with measured compute and copy times on a network that takes no time. For speed,
/// consecutive ops are merged into one, and only one of several ranks that behave alike is played.
namespace isoscale::analysis::breakdown {

/// The programs of a step with far fewer ops: successive compute and copy ops of a stream are
/// merged into one, which ends with an op for which others wait, or before an op that itself waits.
/// All communication ops begin and end at the same times as in the whole programs.
class Condensed {
 public:
  Condensed(const program::OutlineSet& whole, program::Folding folding);

  [[nodiscard]] const program::OutlineSet& set() const { return set_; }
  /// Returns the costs of the merged ops from those of the whole programs. Each rank keeps the
  /// number of its table of costs (table_of_rank).
  [[nodiscard]] simulate::Costs costs(const simulate::Costs& whole) const;

 private:
  void add(const program::Outline& whole, program::Folding folding);

  program::OutlineSet set_;
  std::vector<std::vector<std::uint32_t>> place_;  ///< [outline][op]: its condensed op
};

/// A mesh in which one coordinate stands for each set of alike coordinates (see like_ranks).
struct LikeRanks {
  program::OutlineSet set;
  simulate::Costs costs;
  std::vector<std::uint32_t> rank;  ///< per rank of the whole mesh, its rank in `set`
};

/// Keeps one of each set of alike coordinates of an axis. Two coordinates are alike if no message
/// goes along the axis, and if ranks that differ only in this coordinate have the same program and
/// table of costs. On a network that takes no time, all such ranks run their ops at the same times,
/// so a collective ends at the same time whether one or all of them take part. `set` and `costs`
/// come from usable traces, which have one span per op with possible times.
[[nodiscard]] LikeRanks like_ranks(const program::OutlineSet& set, simulate::Costs costs);

/// The result of a replay: one step in the steady state.
struct Replay {
  /// By rank, the time in which exchanges between stages wait and no other op of the rank runs.
  std::vector<units::Nanoseconds> idle;
  units::Nanoseconds step;  ///< time from one step to the next, of the slowest rank
  std::set<int> assumed;    ///< ranks without a trace, played with mean op times of other ranks
};

/// Replays one step. `traces` has at least one trace, and all are usable; `condensed` is made from
/// the point's programs. Throws base::Error if a program has no traced rank, or on a deadlock.
[[nodiscard]] Replay replay_on_free_network(const results::PointData& point,
                                            const Condensed& condensed, const TraceOfRank& traces);

/// Replays the steps with equally fast ranks, so that only the schedule causes idle time. All ranks
/// with the same program get the op times of the first traced rank among them: the mean time of
/// each op over the steps, scaled by one factor that makes the time per FLOP of the rank's GEMMs
/// equal to that of the median rank. Throws as replay_on_free_network() does.
[[nodiscard]] Replay replay_of_schedule(const results::PointData& point, const Condensed& condensed,
                                        const std::vector<TracedStep>& steps);

}  // namespace isoscale::analysis::breakdown
