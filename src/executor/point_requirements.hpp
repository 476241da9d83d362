// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/executor.hpp"
#include "program/program.hpp"

/// The demands of a point's programs and options on a device: communicators, transports, placement.
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

/// True if any op of any rank travels by Transport::symmetric.
[[nodiscard]] bool uses_symmetric(const program::ProgramSet& set);

/// Throws Unsupported with Description::symmetric_problem, if the programs meet it. Throws
/// base::Error when an op that travels by Transport::symmetric uses a buffer that does not lie in
/// Space::symmetric.
void require_transports(const program::ProgramSet& set, const Description& device);

/// Throws Unsupported when `options` ask for anything about communication beyond the usual of the
/// device `name`.
void require_usual_communication(const SessionOptions& options, std::string_view name);
/// Throws Unsupported when `options` ask for faults.
void require_no_faults(const SessionOptions& options, std::string_view name);
/// Calls `work` while host memory is taken where the options have it. Throws Unsupported when that
/// cannot be.
void on_numa_node(const SessionOptions& options, const std::function<void()>& work);

}  // namespace isoscale::executor
