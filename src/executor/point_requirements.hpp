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

/// All communication of any rank's program. It is a pure function of the set, so it is the same on
/// all ranks.
struct CommunicationNeeds {
  /// The (axes, stream) of collectives, sorted. Each has a communicator of its own, so two streams
  /// never use one for their collectives.
  std::vector<std::pair<mesh::AxisSet, program::StreamId>> collectives;
  /// The axes of exchanges, each with the offsets of its messages as their senders see them,
  /// sorted.
  std::map<mesh::Axis, std::vector<std::int32_t>> exchanges;
};
[[nodiscard]] CommunicationNeeds communication_needs(const program::ProgramSet& set);

/// True if any op of any rank uses Transport::symmetric.
[[nodiscard]] bool uses_symmetric(const program::ProgramSet& set);

/// Throws Unsupported with Description::symmetric_problem, if that problem concerns the programs.
/// Throws base::Error if an op with Transport::symmetric uses a buffer outside Space::symmetric.
void require_transports(const program::ProgramSet& set, const Description& device);

/// Throws Unsupported if `options` ask for anything about communication that differs from the
/// default of the device `name`.
void require_usual_communication(const SessionOptions& options, std::string_view name);
/// Throws Unsupported if `options` ask for faults.
void require_no_faults(const SessionOptions& options, std::string_view name);
/// Calls `work` while host memory is taken from the NUMA node that the options name. Throws
/// Unsupported if that is impossible.
void on_numa_node(const SessionOptions& options, const std::function<void()>& work);

}  // namespace isoscale::executor
