// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "program/outline.hpp"
#include "results/run_data.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

/// The traced steps of a point are its traces that count. A run file may come from anywhere, so
/// that they are checked first. Ops of different ranks that belong together are matched in them,
/// and each communication op is told how long it waited for the last of its partners.
namespace isoscale::analysis {

/// Why the point's outlines cannot be used; "" when they can.
[[nodiscard]] std::string outline_problem(const results::PointData& point);

/// Why there are no traced steps to look at; "" when there are.
[[nodiscard]] std::string missing_traces(const results::PointData& point);

/// A trace is usable if it has one span per op of its rank's outline, in order, and times that make
/// sense. The point's outlines have no problem.
enum class TraceState : std::uint8_t { usable, broken };
[[nodiscard]] TraceState check_trace(const results::PointData& point,
                                     const timeline::StepTrace& trace);

/// True if the times of `rank` can be set against those of other ranks.
[[nodiscard]] bool aligned(const results::PointData& point, int rank);

/// True if a traced step is neither warm-up nor the first of its block.
[[nodiscard]] bool step_counts(const results::PointData& point, const timeline::Timeline& step);

/// The same of step number `step`.
[[nodiscard]] bool step_counts(const results::PointData& point, std::uint32_t step);

/// "rank 3", "ranks 0-3, 8 and 12 more": MPI's ranks of these ranks of the point.
[[nodiscard]] std::string rank_list(const results::PointData& point, const std::set<int>& ranks);

/// One step's traces by rank of the point; null = nothing is known of that rank. Not owned.
using TraceOfRank = std::vector<const timeline::StepTrace*>;

inline constexpr std::uint32_t no_instance = UINT32_MAX;

struct Arrivals {
  /// [rank][op]: when the last known partner of a communication op began it, its own rank included;
  /// the op's own start for all other ops. Empty for ranks without a trace.
  std::vector<std::vector<units::Nanoseconds>> last;
  /// [rank][op]: number of the collective, or of the pair of exchanges, that a communication op is
  /// part of; no_instance for other ops, and for exchanges with several partners.
  std::vector<std::vector<std::uint32_t>> instance;
  std::uint32_t instances = 0;
  bool sees_messages = true;  ///< false: a partner of some exchange has no trace
  std::set<int> unseen;       ///< partners of traced ranks that have no trace themselves
  std::set<int> unmatched;    ///< ranks with a message that no op of the partner takes
};

/// Collectives match by sequence number per (axes, stream, group), messages in order per (axis,
/// offset, direction): linear in the number of spans. `set` and `traces` have passed check_trace.
[[nodiscard]] Arrivals last_arrivals(const program::OutlineSet& set, const TraceOfRank& traces);

/// A message: op numbers of the exchanges that send and receive it, on ranks of the point.
struct Message {
  int sender = 0, receiver = 0;
  std::uint32_t send = 0, receive = 0;

  bool operator==(const Message&) const = default;
};

/// The messages between ranks that both have a trace and that match, by sender and class, in order.
[[nodiscard]] std::vector<Message> messages(const program::OutlineSet& set,
                                            const TraceOfRank& traces);

/// One traced step that counts.
struct TracedStep {
  std::uint32_t step = 0;  ///< number among all steps of the point
  TraceOfRank traces{};    ///< that passed check_trace; not owned
  /// [rank][op]: how long a communication op waited for its last known partner; 0 for all other
  /// ops, and where it is no longer than the clocks of the ranks may be apart. Empty for ranks
  /// without a trace.
  std::vector<std::vector<units::Nanoseconds>> waits{};
  std::vector<std::vector<std::uint32_t>> instance{};  ///< as of Arrivals
  std::uint32_t instances = 0;
};

/// The traced steps of a point, and what could not be said of them.
struct TracedSteps {
  std::vector<TracedStep> steps;
  std::set<int> broken;       ///< ranks with a trace that is no use
  std::set<int> unaligned;    ///< ranks whose clock cannot be set against the others'
  std::set<int> unseen;       ///< partners of traced ranks that have no trace
  std::set<int> unmatched;    ///< ranks with a message that no op of the partner takes
  bool sees_messages = true;  ///< false: some exchange has a partner that is not known
  double clock_error = 0;     ///< seconds; aligned ranks' times may be this far apart

  /// True if every wait is known: no partner is missing, none has a clock of its own.
  [[nodiscard]] bool knows_waits() const {
    return unseen.empty() && unaligned.empty() && unmatched.empty();
  }
  /// The same of exchanges alone.
  [[nodiscard]] bool knows_messages() const {
    return sees_messages && unaligned.empty() && unmatched.empty();
  }
};

/// `point` has no outline_problem and outlives the result.
[[nodiscard]] TracedSteps traced_steps(const results::PointData& point);

/// How long a communication op of this span transferred: what is left after it waited for its last
/// partner. 0 where the partner came after the end, as it may to a message sent eagerly.
[[nodiscard]] inline units::Nanoseconds transfer_time(const timeline::Span& span,
                                                      units::Nanoseconds wait) {
  return std::max(span.end - span.start - wait, units::Nanoseconds{0});
}

/// True if it is known of all these ranks when they began their ops: else waiting for the others
/// cannot be told from transfer.
[[nodiscard]] inline bool all_known(const TracedStep& step, const std::vector<int>& ranks) {
  return std::ranges::none_of(
      ranks, [&](int rank) { return step.waits[static_cast<std::size_t>(rank)].empty(); });
}

}  // namespace isoscale::analysis
