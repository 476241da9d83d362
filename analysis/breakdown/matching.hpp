// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "program/outline.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

/// Which ops of different ranks belong together, and when the last of them had begun.
namespace isoscale::analysis {

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

}  // namespace isoscale::analysis
