// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "program/outline.hpp"
#include "results/records/run_data.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

/// Finds the traced steps of a point that are analysed: those that are neither warm-up nor the
/// first of a block of traced steps. It checks the traces first, since run files may be damaged,
/// and matches the ops of different ranks that communicate with each other, which shows how long
/// each op waited for its last partner. An outline is a program without data, as files store it.
namespace isoscale::analysis::breakdown {

/// Returns why the outlines (the ops of each rank's program) cannot be used; empty if they can.
[[nodiscard]] std::string outline_problem(const results::PointData& point);

/// Returns why the traces cannot be analysed: no step was traced, or outline_problem(). Else empty.
[[nodiscard]] std::string missing_traces(const results::PointData& point);

/// True if the times of `rank` can be compared with those of other ranks.
[[nodiscard]] bool aligned(const results::PointData& point, int rank);

/// True if a traced step is analysed: it is neither warm-up nor the first of its block.
[[nodiscard]] bool step_counts(const results::PointData& point, const timeline::Timeline& step);
[[nodiscard]] bool step_counts(const results::PointData& point, std::uint32_t step);

/// Returns the usable traces of the analysed steps, by rank; empty with an outline_problem().
[[nodiscard]] std::map<int, std::vector<const timeline::StepTrace*>> usable_traces(
    const results::PointData& point);

/// Returns the seconds of compute and copies of each rank in one step; empty if `step` does not
/// have one value of each kind for each of the `ranks` ranks.
[[nodiscard]] std::vector<double> busy_seconds(const results::OpSums& step, std::size_t ranks);

/// Returns "rank 3", "ranks 0-3, 8" or "ranks 0-3, 8-9, 11, 14 and 5 more", with at most four
/// ranges, for ranks of the point. The text has their numbers in MPI_COMM_WORLD.
[[nodiscard]] std::string rank_list(const results::PointData& point, const std::set<int>& ranks);

/// One step's traces by rank of the point; null where the rank has no trace. Not owned.
using TraceOfRank = std::vector<const timeline::StepTrace*>;

inline constexpr std::uint32_t no_instance = UINT32_MAX;

/// A message: the ranks of the point that send and receive it, and their exchange ops.
struct Message {
  int sender = 0, receiver = 0;
  std::uint32_t send = 0, receive = 0;

  bool operator==(const Message&) const = default;
};

/// Returns all messages with a matching send and receive on two traced ranks. Messages with the
/// same two ranks, axis and offset are adjacent in the result, in program order.
[[nodiscard]] std::vector<Message> messages(const program::OutlineSet& set,
                                            const TraceOfRank& traces);

/// One traced step that is analysed (see step_counts).
struct TracedStep {
  std::uint32_t step = 0;  ///< number among all steps of the point
  TraceOfRank traces{};    ///< usable traces, see usable_step; not owned
  /// Indexed by [rank][op]: how long a communication op waited for the last to arrive of those
  /// partners whose times are known. 0 for other ops, and for waits no longer than the clock error.
  /// Empty without a trace or an aligned clock.
  std::vector<std::vector<units::Nanoseconds>> waits{};
  /// Indexed by [rank][op]: the number of the instance (a collective, or a pair of exchanges) that
  /// a communication op is part of; no_instance for other ops, and for exchanges with several
  /// partners or with one whose times are not known. Empty where `waits` is empty.
  std::vector<std::vector<std::uint32_t>> instance{};
  std::uint32_t instances = 0;
};

/// Returns the step of a timeline with its usable traces, but without waits. A trace is usable if
/// it has one span per op of its rank's program, in order, with possible times; the ranks of
/// unusable traces are added to `broken`. The point has no outline_problem().
[[nodiscard]] TracedStep usable_step(const results::PointData& point,
                                     const timeline::Timeline& timeline, std::set<int>& broken);

/// The traced steps of a point that are analysed, and the ranks about which something is missing.
struct TracedSteps {
  std::vector<TracedStep> steps;
  std::set<int> broken;     ///< ranks with an unusable trace
  std::set<int> unaligned;  ///< ranks whose clock cannot be compared with the others'
  /// Ranks without a trace, or without an aligned clock, with which traced ranks communicate.
  std::set<int> unseen;
  std::set<int> unmatched;  ///< ranks with a message that no op of the partner matches
  /// False if a partner of some exchange has no trace or no aligned clock.
  bool sees_messages = true;
  double clock_error = 0;  ///< seconds by which the clocks of aligned ranks may differ

  /// True if every wait is known.
  [[nodiscard]] bool knows_waits() const {
    return unseen.empty() && unaligned.empty() && unmatched.empty();
  }
  /// True if every wait in an exchange is known.
  [[nodiscard]] bool knows_messages() const {
    return sees_messages && unaligned.empty() && unmatched.empty();
  }
};

/// Returns the analysed steps. `point` has no outline_problem() and must outlive the result.
[[nodiscard]] TracedSteps traced_steps(const results::PointData& point);

/// Returns the length of a communication op's span without the wait for its last partner; 0 if the
/// partner arrived after the span's end, which is possible for a message sent eagerly.
[[nodiscard]] inline units::Nanoseconds transfer_time(const timeline::Span& span,
                                                      units::Nanoseconds wait) {
  return std::max(span.end - span.start - wait, units::Nanoseconds{0});
}

/// True if the waits of all these ranks are known, so that waiting can be separated from transfer.
[[nodiscard]] inline bool all_known(const TracedStep& step, const std::vector<int>& ranks) {
  return std::ranges::none_of(
      ranks, [&](int rank) { return step.waits[static_cast<std::size_t>(rank)].empty(); });
}

}  // namespace isoscale::analysis::breakdown
