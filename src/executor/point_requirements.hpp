// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "executor/executor.hpp"
#include "program/program.hpp"

/// Determines what the programs and options of a point (one measurement) require of a device:
/// communicators, transports, and the NUMA node of host memory.
namespace isoscale::executor {

/// Calls visit(op, payload) for each op of one kind in all sections of a program; the setup section
/// comes first.
template <class Kind, class Visit>
void for_each_op(const program::RankProgram& program, const Visit& visit) {
  for (const program::Program* section : program.sections()) {
    for (const program::Op& op : section->ops) {
      if (const auto* const payload = std::get_if<Kind>(&op.payload)) visit(op, *payload);
    }
  }
}
/// Calls visit(op, payload) for each op of the kind Collective or Exchange that uses
/// Transport::symmetric.
template <class Kind, class Visit>
void for_each_symmetric(const program::RankProgram& program, const Visit& visit) {
  for_each_op<Kind>(program, [&](const program::Op& op, const Kind& payload) {
    if (payload.transport == program::Transport::symmetric) visit(op, payload);
  });
}

/// The communicators that the programs of a set need. They depend on the set alone, so all ranks
/// compute the same communicators.
struct CommunicationNeeds {
  /// The (axes, stream) pairs of collectives. Each pair has its own communicator, so that two
  /// streams never use the same communicator for collectives.
  std::set<std::pair<mesh::AxisSet, program::StreamId>> collectives;
  /// For each axis of messages: the offsets from sender to receiver, in steps along the axis.
  std::map<mesh::Axis, std::set<std::int32_t>> exchanges;
};
[[nodiscard]] CommunicationNeeds communication_needs(const program::ProgramSet& set);

/// True if any op of any rank uses Transport::symmetric.
[[nodiscard]] bool uses_symmetric(const program::ProgramSet& set);

/// Throws Unsupported if a program uses Transport::symmetric and the device is known not to support
/// it (Description::symmetric_problem is not ""). Throws base::Error if an op with
/// Transport::symmetric uses a buffer outside Space::symmetric.
void require_transports(const program::ProgramSet& set, const Description& device);

/// Throws Unsupported if `options` choose an algorithm or protocol for collectives, or ask for
/// registered communication buffers. `name` is the device's name for the message.
void require_usual_communication(const SessionOptions& options, std::string_view name);
/// Throws Unsupported if `options` inject faults. `name` is the device's name for the message.
void require_no_faults(const SessionOptions& options, std::string_view name);
/// Calls `work`. If the options name a NUMA node, host memory that `work` allocates comes from this
/// node; throws Unsupported if that is impossible.
void on_numa_node(const SessionOptions& options, const std::function<void()>& work);

}  // namespace isoscale::executor
