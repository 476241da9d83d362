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
#include "results/run_data.hpp"
#include "units/quantity.hpp"

/// Where the time of a traced step went, by DESIGN: exclusive categories in this priority.
namespace isoscale::analysis {

struct TracedSteps;

/// Seconds, mean over ranks (and over traced steps); sums to `step`.
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

/// The reasons why ranks waited: `wait` of the mean, divided.
struct WaitSplit {
  double imbalance = 0;  ///< seconds; the same ranks come late in every step
  double noise = 0;      ///< seconds; now one, now another
};

/// Whom ranks waited for in collectives.
struct CausedWait {
  std::vector<double> of_rank;     ///< seconds a step, added up over those that waited; by rank
  std::vector<int> steps_as_last;  ///< in how many traced steps most of the waiting was for it
};

struct BreakdownResult {
  std::optional<Breakdown> mean;   ///< absent without traces
  std::vector<int> ranks;          ///< traced ranks of the point, ascending
  std::vector<Breakdown> of_rank;  ///< one per entry of `ranks`, mean over traced steps
  double unaccounted = 0;  ///< share of the traced steps whose spans contradict each other; mean
  std::string missing;     ///< what could not be said, and why; "" when all could

  /// The mean once more, by where in the program the time went; `other` is of no place, and `step`
  /// what the place has of the step.
  std::map<program::Phase, Breakdown> by_phase;
  std::map<int, Breakdown> by_layer;           ///< layer of the model, -1 for none
  std::map<mesh::AxisSet, Breakdown> by_axes;  ///< of communication alone
  std::optional<LargestUnexplained> largest;   ///< absent where nothing is unexplained
  /// Absent where waits are not all known, and where there are too few to tell: below two traced
  /// steps, or twenty collectives and pairs of exchanges whose members waited and six steps of op
  /// sums.
  std::optional<WaitSplit> waits;
  CausedWait caused;                        ///< see WaitCauses::caused
  std::optional<double> free_network_step;  ///< seconds; the replay's step, mean over steps
  std::size_t steps = 0;                    ///< traced steps that count
  double slowest_step = 0;                  ///< seconds, of the slowest rank; mean over them
  /// True if wait (bubble) is all that there was; else it is what is certain, and the rest is part
  /// of transfer (of wait).
  bool wait_known = true, bubble_known = true;
  /// The part of the bubble that the schedule asks for among ranks that are all alike; mean over
  /// ranks.
  std::optional<double> schedule_bubble;
  /// Seconds; no wait below it was counted. Absent where some rank's clock is not aligned at all.
  std::optional<double> clock_error;
};

/// compute: a compute op runs. copies: a Copy and no compute. transfer, wait, bubble: a
/// communication op of this rank runs and nothing above. Of a collective, until its last member has
/// arrived is wait, the rest transfer. Of an exchange, until the partner has arrived is
/// late-partner time; per rank, min(that, idle time of the free-network replay with this step's
/// measured op times) is bubble and the rest wait. gap: nothing of this rank runs although an op is
/// yet to begin. other: what the sum leaves, such as time after the last op, or that spans claim
/// although they cannot have run (before the previous op of their stream or an op they wait for had
/// ended); time that spans claim outside of their step is in a category, so other shrinks.
/// `unaccounted` counts both as positive. Members that were not traced, or whose clocks are not
/// aligned, are named in `missing`; lateness below the error of the clocks is not counted.
[[nodiscard]] BreakdownResult breakdown(const results::PointData& point);
/// The same from steps at hand, which are those of `point`.
[[nodiscard]] BreakdownResult breakdown(const results::PointData& point, const TracedSteps& traced);

/// Converts a time of a trace to the seconds that breakdowns have.
inline double seconds(units::Nanoseconds time) { return units::to_seconds(time).value(); }

}  // namespace isoscale::analysis
