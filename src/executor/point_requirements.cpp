// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/point_requirements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "machine/numa_memory_binding.hpp"

namespace isoscale::executor {
namespace {

/// Calls visit(slice) for every slice that the program sends or receives by Transport::symmetric.
template <class Visit>
void for_each_symmetric_slice(const program::RankProgram& program, const Visit& visit) {
  for_each_symmetric<program::Collective>(program, [&](const auto&, const auto& collective) {
    visit(collective.send);
    visit(collective.receive);
  });
  for_each_symmetric<program::Exchange>(program, [&](const auto&, const auto& exchange) {
    for (const program::Transfer& transfer : exchange.transfers) visit(transfer.slice);
  });
}

}  // namespace

CommunicationNeeds communication_needs(const program::ProgramSet& set) {
  CommunicationNeeds needs;
  for (const program::RankProgram& program : set.programs) {
    for_each_op<program::Collective>(program, [&](const auto& op, const auto& collective) {
      needs.collectives.emplace(collective.axes, op.stream);
    });
    for_each_op<program::Exchange>(program, [&](const auto&, const auto& exchange) {
      for (const program::Transfer& transfer : exchange.transfers) {
        const bool sends = transfer.direction == program::Direction::send;
        needs.exchanges[transfer.axis].insert(sends ? transfer.offset : -transfer.offset);
      }
    });
  }
  return needs;
}

bool uses_symmetric(const program::ProgramSet& set) {
  return std::ranges::any_of(set.programs, [](const program::RankProgram& program) {
    bool found = false;
    for_each_symmetric_slice(program, [&](const program::Slice& /*slice*/) { found = true; });
    return found;
  });
}

void require_transports(const program::ProgramSet& set, const Description& device) {
  for (const program::RankProgram& program : set.programs) {
    for_each_symmetric_slice(program, [&](const program::Slice& slice) {
      if (!device.symmetric_problem.empty()) throw Unsupported(device.symmetric_problem);
      if (slice.buffer == program::no_buffer) return;
      const program::Space space = program.buffers.at(slice.buffer).space;
      if (space == program::Space::symmetric) return;
      throw base::Error(
          fmt::format("transport=symmetric needs symmetric memory, but the data is in {} memory",
                      program::name(space)));
    });
  }
}

void require_usual_communication(const SessionOptions& options, std::string_view name) {
  if (!options.collective_algorithm.empty() || !options.collective_protocol.empty()) {
    throw Unsupported(fmt::format("the {} device has no choice of algorithm or protocol", name));
  }
  if (options.registration != Registration::none) {
    throw Unsupported(fmt::format("the {} device registers no memory", name));
  }
}

void require_no_faults(const SessionOptions& options, std::string_view name) {
  if (options.faults.any()) {
    throw Unsupported(fmt::format("the {} device cannot be slowed down on purpose", name));
  }
}

void on_numa_node(const SessionOptions& options, const std::function<void()>& work) {
  if (!options.numa_node) return work();
  std::optional<machine::MemoryOnNode> placed;
  try {
    placed.emplace(*options.numa_node);
  } catch (const machine::PlacementError& error) {
    throw Unsupported(error.what());
  }
  work();
}

}  // namespace isoscale::executor
