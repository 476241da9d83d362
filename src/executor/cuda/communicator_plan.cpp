// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "executor/cuda/communicators.hpp"

namespace isoscale::executor::cuda {

LinkKind link_kind(const mesh::Shape& mesh, int rank, mesh::Axis axis, std::int32_t offset) {
  const int extent = mesh[axis];
  const int distance = std::abs(offset);
  const int here = mesh::coordinates(mesh, rank)[axis];
  // A link begins at the rank from which the other rank is reached by `distance` steps in positive
  // direction.
  const int begin = offset >= 0 ? here : ((here + offset) % extent + extent) % extent;
  return {.axis = axis, .distance = distance, .parity = distance == 0 ? 0 : begin / distance % 2};
}

std::vector<program::Transfer> transfers_by_link(const mesh::Shape& mesh, int rank,
                                                 const program::Exchange& exchange) {
  std::vector<program::Transfer> transfers = exchange.transfers;
  std::ranges::stable_sort(transfers, {}, [&](const program::Transfer& transfer) {
    return link_kind(mesh, rank, transfer.axis, transfer.offset);
  });
  return transfers;
}

namespace {

/// The axis, offset and direction that messages of one kind have in common.
struct MessageKind {
  mesh::Axis axis = mesh::Axis::pp;
  std::int32_t offset = 1;
  program::Direction direction = program::Direction::send;

  auto operator<=>(const MessageKind&) const = default;
};

/// The Exchange ops of a program that have messages along an axis: their streams, and for each op
/// the kinds of its messages.
struct AxisExchanges {
  std::set<program::StreamId> streams;
  std::vector<std::set<MessageKind>> ops;
};

std::map<mesh::Axis, AxisExchanges> exchanges_of(const program::RankProgram& program) {
  std::map<mesh::Axis, AxisExchanges> result;
  for_each_op<program::Exchange>(program, [&](const program::Op& op,
                                              const program::Exchange& exchange) {
    std::map<mesh::Axis, std::set<MessageKind>> messages;
    for (const program::Transfer& at : exchange.transfers) {
      messages[at.axis].insert({.axis = at.axis, .offset = at.offset, .direction = at.direction});
    }
    for (auto& [axis, of_axis] : messages) {
      result[axis].streams.insert(op.stream);
      result[axis].ops.push_back(std::move(of_axis));
    }
  });
  return result;
}

/// True if each op that sends a message by some offset along the axis also receives a message from
/// the rank at the opposite offset, and the reverse, as in shifts and halo exchanges.
bool is_shift(const AxisExchanges& exchanges) {
  using enum program::Direction;
  return std::ranges::all_of(exchanges.ops, [](const std::set<MessageKind>& op) {
    return std::ranges::all_of(op, [&op](const MessageKind& message) {
      return op.contains({.axis = message.axis,
                          .offset = -message.offset,
                          .direction = message.direction == send ? receive : send});
    });
  });
}

/// True if is_shift() holds for all exchanges along an axis, and all ranks of a group have the same
/// exchanges in the same order.
bool corresponds(const program::ProgramSet& set, mesh::Axis axis,
                 const std::vector<AxisExchanges>& of_programs) {
  const auto of_rank = [&](int rank) -> const AxisExchanges& {
    return of_programs[set.program_of_rank[static_cast<std::size_t>(rank)]];
  };
  if (!std::ranges::all_of(of_programs, is_shift)) return false;
  for (int rank = 0; rank < set.mesh.size(); ++rank) {
    if (of_rank(rank).ops != of_rank(mesh::neighbour(set.mesh, rank, axis, 1)).ops) return false;
  }
  return true;
}

/// Returns the axes on which all links share one communicator. `exchanges` has, for each program,
/// its exchanges by axis.
mesh::AxisSet joined_axes(const program::ProgramSet& set, const CommunicationNeeds& needs,
                          const std::vector<std::map<mesh::Axis, AxisExchanges>>& exchanges) {
  mesh::AxisSet joined;
  for (const auto& [axis, offsets] : needs.exchanges) {
    std::vector<AxisExchanges> of_programs;
    for (const auto& of_program : exchanges) {
      const auto found = of_program.find(axis);
      of_programs.push_back(found == of_program.end() ? AxisExchanges{} : found->second);
    }
    const bool has_one_stream = std::ranges::all_of(
        of_programs, [](const AxisExchanges& at) { return at.streams.size() <= 1; });
    if (!has_one_stream) continue;
    const int extent = set.mesh[axis];
    std::set<int> hops;
    for (const std::int32_t offset : offsets) hops.insert((offset % extent + extent) % extent);
    // Two offsets that are equal modulo the extent lead to the same rank. On a shared
    // communicator, only the order of their messages tells them apart. Links of such an axis
    // therefore share a communicator only if all ranks of a group have the same exchanges in the
    // same order.
    if (hops.size() < offsets.size() && !corresponds(set, axis, of_programs)) continue;
    joined |= axis;
  }
  return joined;
}

}  // namespace

CommunicatorPlan communicator_plan(const program::ProgramSet& set) {
  const CommunicationNeeds needs = communication_needs(set);
  std::vector<std::map<mesh::Axis, AxisExchanges>> exchanges;
  std::vector<std::set<MessageKind>> messages;  // message kinds of each program
  for (const program::RankProgram& program : set.programs) {
    exchanges.push_back(exchanges_of(program));
    std::set<MessageKind>& all = messages.emplace_back();
    for (const auto& [axis, along] : exchanges.back()) {
      for (const std::set<MessageKind>& op : along.ops) all.insert(op.begin(), op.end());
    }
  }
  CommunicatorPlan plan{.collectives = {needs.collectives.begin(), needs.collectives.end()},
                        .links = {},
                        .joined = joined_axes(set, needs, exchanges)};
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
