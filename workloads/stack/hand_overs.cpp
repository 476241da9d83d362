// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/hand_overs.hpp"

#include <utility>

namespace isoscale::workloads::stack {

using program::BufferId;
using program::Direction;
using program::Role;
using program::Slice;

HandOvers::HandOvers(program::Builder& builder, const Geometry& geometry, const Types& types)
    : builder_(builder), g_(geometry), type_(types.compute) {}

void HandOvers::leave(const Action& made, BufferId buffer) { made_[key(made)] = buffer; }

BufferId HandOvers::take(const Action& awaited) { return received_.extract(key(awaited)).mapped(); }

Role HandOvers::role_of(const Action& awaited) const {
  return awaited.pass == Pass::forward ? Role::activation : Role::workspace;
}

BufferId HandOvers::allocate(std::uint64_t count, Role role, int microbatch) {
  return builder_.allocate({.dtype = type_,
                            .role = role,
                            .microbatch = role == Role::activation ? microbatch : -1,
                            .count = count});
}

void HandOvers::write(const HandOver& message) {
  const Action& named = message.made ? *message.made : *message.awaited;
  builder_.at(
      {.phase = named.pass == Pass::forward ? program::Phase::forward : program::Phase::backward,
       .layer = -1,
       .microbatch = named.microbatch});
  const bool scatters = g_.scatters_hand_over();
  const std::uint64_t rows =
      g_.activation() / (scatters ? static_cast<std::uint64_t>(g_.tp) : 1);  // elements of them
  program::Exchange exchange;
  const auto add = [&](Direction direction, const Slice& slice) {
    exchange.transfers.push_back(
        {.direction = direction, .axis = mesh::Axis::pp, .offset = message.offset, .slice = slice});
  };
  BufferId outgoing = program::no_buffer, incoming = program::no_buffer;
  if (message.made) {
    outgoing = made_.extract(key(*message.made)).mapped();
    add(Direction::send,
        {.buffer = outgoing, .axis = mesh::Axis::tp, .count = rows, .step = scatters ? rows : 0});
  }
  if (message.awaited) {
    const Role role = scatters ? Role::workspace : role_of(*message.awaited);
    incoming = allocate(rows, role, message.awaited->microbatch);
    add(Direction::receive, builder_.whole(incoming));
  }
  builder_.emit(builder_.stream(message.offset > 0 ? "pp_next" : "pp_prev"), std::move(exchange));
  if (message.made) builder_.release(outgoing);
  if (!message.awaited) return;
  received_[key(*message.awaited)] = scatters ? gather(incoming, *message.awaited) : incoming;
}

BufferId HandOvers::gather(BufferId part, const Action& awaited) {
  const BufferId whole = allocate(g_.activation(), role_of(awaited), awaited.microbatch);
  builder_.emit(0, program::Collective{.kind = program::CollectiveKind::all_gather,
                                       .axes = mesh::Axis::tp,
                                       .send = builder_.whole(part),
                                       .receive = builder_.whole(whole)});
  builder_.release(part);
  return whole;
}

}  // namespace isoscale::workloads::stack
