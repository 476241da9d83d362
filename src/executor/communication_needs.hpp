// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "program/program.hpp"

namespace isoscale::executor {

/// Everything that any rank's program communicates over. A pure function of the set, hence alike on
/// all ranks.
struct CommunicationNeeds {
  /// (axes, stream) of collectives, sorted. One communicator each: never do two streams collect on
  /// one.
  std::vector<std::pair<mesh::AxisSet, program::StreamId>> collectives;
  /// Axes of exchanges, each with the offsets of its messages as their senders see them, sorted.
  std::map<mesh::Axis, std::vector<std::int32_t>> exchanges;
};
[[nodiscard]] CommunicationNeeds communication_needs(const program::ProgramSet& set);

}  // namespace isoscale::executor
