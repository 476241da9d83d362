// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <set>
#include <vector>

#include "executor/cuda/communicators.hpp"

namespace isoscale::executor::cuda {

std::set<MessageKind> messages_of(const program::RankProgram& program) {
  std::set<MessageKind> messages;
  for (const program::Program* section : program.sections()) {
    for (const program::Op& op : section->ops) {
      const auto* const exchange = std::get_if<program::Exchange>(&op.payload);
      if (exchange == nullptr) continue;
      for (const program::Transfer& transfer : exchange->transfers) {
        messages.insert(
            {.axis = transfer.axis, .offset = transfer.offset, .direction = transfer.direction});
      }
    }
  }
  return messages;
}

LinkKind link_kind(const mesh::Shape& mesh, int rank, mesh::Axis axis, std::int32_t offset) {
  const int extent = mesh[axis];
  const int distance = std::abs(offset);
  const int here = mesh::coordinates(mesh, rank)[axis];
  // A link begins at the end from which its other end is +distance away.
  const int begin = offset >= 0 ? here : ((here + offset) % extent + extent) % extent;
  return {.axis = axis, .distance = distance, .parity = distance == 0 ? 0 : begin / distance % 2};
}

namespace {

/// Streams that have messages along an axis, on any rank.
std::set<program::StreamId> streams_of(const program::ProgramSet& set, mesh::Axis axis) {
  std::set<program::StreamId> streams;
  for (const program::RankProgram& program : set.programs) {
    for (const program::Program* section : program.sections()) {
      for (const program::Op& op : section->ops) {
        const auto* const exchange = std::get_if<program::Exchange>(&op.payload);
        if (exchange == nullptr) continue;
        for (const program::Transfer& transfer : exchange->transfers) {
          if (transfer.axis == axis) streams.insert(op.stream);
        }
      }
    }
  }
  return streams;
}

mesh::AxisSet joined_axes(const program::ProgramSet& set, const CommunicationNeeds& needs) {
  constexpr std::size_t most_apart = 2;  // a ring or a pipeline has both directions
  mesh::AxisSet joined;
  for (const auto& [axis, offsets] : needs.exchanges) {
    if (offsets.size() <= most_apart || streams_of(set, axis).size() > 1) continue;
    const int extent = set.mesh[axis];
    std::set<int> hops;
    for (const std::int32_t offset : offsets) hops.insert((offset % extent + extent) % extent);
    if (hops.size() < offsets.size()) continue;
    joined = mesh::AxisSet::from_bits(
        static_cast<std::uint8_t>(joined.bits() | mesh::AxisSet{axis}.bits()));
  }
  return joined;
}

}  // namespace

CommunicatorPlan communicator_plan(const program::ProgramSet& set) {
  const CommunicationNeeds needs = communication_needs(set);
  CommunicatorPlan plan{
      .collectives = needs.collectives, .links = {}, .joined = joined_axes(set, needs)};
  std::vector<std::set<MessageKind>> messages;  // by program
  for (const program::RankProgram& program : set.programs) messages.push_back(messages_of(program));
  std::set<LinkKind> links;
  for (int rank = 0; rank < set.mesh.size(); ++rank) {
    const std::uint32_t program = set.program_of_rank[static_cast<std::size_t>(rank)];
    for (const MessageKind& message : messages[program]) {
      links.insert(plan.carrier(link_kind(set.mesh, rank, message.axis, message.offset)));
    }
  }
  plan.links.assign(links.begin(), links.end());
  return plan;
}

}  // namespace isoscale::executor::cuda
