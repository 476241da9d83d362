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

/// Divides the time of a traced step into exclusive categories, in the order of priority of
/// docs/numbers.md.
namespace isoscale::analysis::breakdown {

struct TracedSteps;

/// Seconds, mean over ranks (and over traced steps). The categories sum to `step`.
struct Breakdown {
  double compute = 0, copies = 0, transfer = 0, wait = 0, bubble = 0, gap = 0, other = 0;
  double step = 0;
  double hidden_communication = 0;  ///< communication that ran while this rank computed or copied
  double hidden_copies = 0;         ///< copies that ran while this rank computed

  Breakdown& operator+=(const Breakdown& more);
  Breakdown& operator*=(double factor);
};

/// The longest stretch of a traced step that no category explains.
struct LargestUnexplained {
  int rank = 0;            ///< of the point
  std::uint32_t step = 0;  ///< number among all steps of the point
  double begin = 0;        ///< seconds after the step began
  double length = 0;       ///< seconds
  std::string after{};  ///< the op that ended before it, "gemm, forward, layer 3"; "" at the begin
};

/// The wait time of BreakdownResult::mean, divided by its cause.
struct WaitSplit {
  double imbalance = 0;  ///< seconds; the same ranks are late in every step
  double noise = 0;      ///< seconds; different ranks are late in different steps
};

/// The waiting in collectives that each rank caused by coming last.
struct CausedWait {
  std::vector<double> of_rank;     ///< seconds per step, summed over the ranks that waited; by rank
  std::vector<int> steps_as_last;  ///< traced steps in which the rank caused most of the waiting
};

struct BreakdownResult {
  std::optional<Breakdown> mean;   ///< absent without traces
  std::vector<int> ranks;          ///< traced ranks of the point, ascending
  std::vector<Breakdown> of_rank;  ///< one per entry of `ranks`, mean over traced steps
  double unaccounted = 0;  ///< share of the traced steps whose spans contradict each other; mean
  std::string missing;     ///< what is not known, and why; "" when all is

  /// `mean`, split by place in the program. `other` is 0, since it belongs to no place; `step` is
  /// the sum of the place's parts.
  std::map<program::Phase, Breakdown> by_phase;
  std::map<int, Breakdown> by_layer;           ///< layer of the model, -1 for none
  std::map<mesh::AxisSet, Breakdown> by_axes;  ///< of communication only
  std::optional<LargestUnexplained> largest;   ///< absent where nothing is unexplained
  /// Absent if some wait is not known, with fewer than two traced steps, and if the data are too
  /// few: fewer than twenty instances (collectives, or pairs of exchanges) in which a rank waited,
  /// and also fewer than six steps of op sums.
  std::optional<WaitSplit> waits;
  CausedWait caused;                        ///< see WaitCauses::caused
  std::optional<double> free_network_step;  ///< seconds; the replay's step, mean over steps
  std::size_t steps = 0;                    ///< traced steps that count
  double slowest_step = 0;  ///< seconds, of the slowest rank; mean over the traced steps
  /// True if `wait`, or `bubble`, is complete. Otherwise it is a lower bound: unknown wait is
  /// counted as transfer, and unknown bubble as wait.
  bool wait_known = true, bubble_known = true;
  /// The part of the bubble that the schedule itself causes when all ranks are alike; mean over
  /// ranks.
  std::optional<double> schedule_bubble;
  /// Seconds; shorter waits were not counted. Absent where the clock of some rank is not aligned.
  std::optional<double> clock_error;
};

/// Divides the traced steps of a point by these definitions.
///   compute: a compute op runs.
///   copies: a Copy op runs and no compute op.
///   transfer, wait, bubble: a communication op of this rank runs and neither of the above. In a
///     collective, the time until its last member has arrived is wait, the rest transfer. In an
///     exchange, the time until the partner has arrived is late-partner time; per rank,
///     min(late-partner time, idle time of the free-network replay with this step's measured op
///     times) is bubble and the rest wait.
///   gap: nothing of this rank runs although an op is yet to begin.
///   other: the step less all of the above, such as time after the last op, or time that spans
///     claim although they cannot have run (before the previous op of their stream or an op they
///     wait for had ended). Time that spans claim outside of their step is in a category, so it
///     makes `other` smaller.
/// `unaccounted` counts both of these as positive. Members that were not traced, or whose clocks
/// are not aligned, are named in `missing`; lateness below the error of the clocks is not counted.
[[nodiscard]] BreakdownResult breakdown(const results::PointData& point);
/// Does the same with the traced steps of `point` as traced_steps() returned them.
[[nodiscard]] BreakdownResult breakdown(const results::PointData& point, const TracedSteps& traced);

/// Converts a time of a trace to seconds, the unit of breakdowns.
inline double seconds(units::Nanoseconds time) { return units::to_seconds(time).value(); }

}  // namespace isoscale::analysis::breakdown
