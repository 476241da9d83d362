// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mesh/mesh.hpp"
#include "program/op.hpp"
#include "results/records/run_data.hpp"
#include "units/quantity.hpp"

/// Divides the time of a traced step into the exclusive categories of docs/breakdown.md.
namespace isoscale::analysis::breakdown {

struct TracedSteps;

/// The time of a step by category, in seconds: of one rank, or the mean over ranks; usually the
/// mean over traced steps. The categories sum to `step`. `transfer` is communication that nothing
/// hides, from the arrival of its last partner on, and `wait` is the time before. `bubble` is the
/// waiting between pipeline stages that remains on a network that takes no time. In a `gap` nothing
/// runs before the next op; `other` is not explained.
struct Breakdown {
  double compute = 0, copies = 0, transfer = 0, wait = 0, bubble = 0, gap = 0, other = 0;
  double step = 0;
  double hidden_communication = 0;  ///< communication that ran while this rank computed or copied
  /// The part of hidden_communication in which data moved; in the rest, posted messages and
  /// collectives only waited for their partners.
  double hidden_transfer = 0;
  double hidden_copies = 0;  ///< copies that ran while this rank computed

  Breakdown& operator+=(const Breakdown& more);
  Breakdown& operator*=(double factor);
};

/// The longest stretch of a traced step that no category explains.
struct LargestUnexplained {
  int rank = 0;            ///< rank of the point
  std::uint32_t step = 0;  ///< number among all steps of the point
  double begin = 0;        ///< seconds after the step began
  double length = 0;       ///< seconds
  std::string after{};     ///< the op before it, "gemm, forward, layer 3"; "" at the start
};

/// The wait time of BreakdownResult::mean, split into parts by the cause of waiting.
struct WaitSplit {
  double imbalance = 0;  ///< seconds; the same ranks are late in every step
  double noise = 0;      ///< seconds; different ranks are late in different steps
};

/// The time that other ranks waited for each rank in the collectives in which it arrived last.
struct CausedWait {
  std::vector<double> of_rank;  ///< [rank]: seconds per step, summed over the ranks that waited
  /// [rank]: the number of traced steps in which it caused more waiting than any other rank.
  std::vector<int> steps_as_last;
};

struct BreakdownResult {
  std::optional<Breakdown> mean;   ///< absent if no trace could be analysed
  std::vector<int> ranks;          ///< traced ranks of the point, ascending
  std::vector<Breakdown> of_rank;  ///< one per entry of `ranks`, mean over traced steps
  double unaccounted = 0;          ///< share of the traced steps' time; breakdown() defines it
  std::string missing;             ///< sentences on values that are not known, and why; "" if none

  /// These maps split `mean` by phase, layer and axes. `other` is 0 in them, since it belongs to no
  /// op, and `step` is the sum of the other categories.
  std::map<program::Phase, Breakdown> by_phase;
  std::map<int, Breakdown> by_layer;           ///< by layer of the model; -1 = no layer
  std::map<mesh::AxisSet, Breakdown> by_axes;  ///< only communication
  std::optional<LargestUnexplained> largest;   ///< absent if all time is explained
  /// Absent if some wait is not known or fewer than two steps were traced. Also absent if there is
  /// too little data: fewer than twenty instances (collectives, or pairs of exchanges) in which
  /// ranks waited, and fewer than six steps with known sums of op times (PointData::op_sums).
  std::optional<WaitSplit> waits;
  CausedWait caused;  ///< only collectives (see WaitCauses::caused)
  /// Seconds of a step on a network that takes no time; absent if it could not be simulated.
  std::optional<double> free_network_step;
  std::size_t steps = 0;    ///< number of analysed traced steps
  double slowest_step = 0;  ///< seconds, of the slowest rank; mean over the traced steps
  /// False if `wait` or `bubble` is a lower bound: unknown wait is counted as transfer, and unknown
  /// bubble as wait.
  bool wait_known = true, bubble_known = true;
  /// The part of the bubble that remains if all ranks are equally fast; mean over ranks. Absent
  /// without pipeline stages, and if the bubble is not known.
  std::optional<double> schedule_bubble;
  /// Seconds by which the clocks of ranks may differ; waits shorter than this were not counted.
  /// Absent if the clock of some traced rank is not aligned.
  std::optional<double> clock_error;
};

/// Divides the traced steps of a point into the categories of docs/breakdown.md. The part of a span
/// outside of its step is counted in the span's category, so it lowers `other`. `unaccounted` is
/// the time in no category plus the time counted outside of the step, as a share of all time.
/// `missing` names, among others, the ranks that were not traced or whose clocks are not aligned.
[[nodiscard]] BreakdownResult breakdown(const results::PointData& point);
/// Returns breakdown(point); `traced` is the result of traced_steps(point).
[[nodiscard]] BreakdownResult breakdown(const results::PointData& point, const TracedSteps& traced);

/// Converts a time of a trace to seconds, the unit of breakdowns.
inline double seconds(units::Nanoseconds time) { return units::to_seconds(time).value(); }

}  // namespace isoscale::analysis::breakdown
