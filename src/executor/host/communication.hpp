// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "executor/host/communicators.hpp"
#include "executor/resolver.hpp"
#include "program/op.hpp"

/// Plays ops that communicate by calls of MPI.
namespace isoscale::executor::host {

struct Player;

struct Message {
  std::byte* data = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_BYTE;
  int peer = 0;
  int tag = 0;
  MPI_Comm communicator = MPI_COMM_NULL;
};

/// Messages that start together and end together.
struct ExchangeCall {
  std::vector<Message> receives, sends;
};
void run(const ExchangeCall& call, Player& player);

/// One call of one MPI collective.
struct MpiCall {
  program::CollectiveKind kind = program::CollectiveKind::barrier;
  MPI_Comm communicator = MPI_COMM_NULL;
  MPI_Datatype type = MPI_BYTE;
  MPI_Op operation = MPI_OP_NULL;
  int root = 0;
  int count = 0;               ///< elements, as MPI's manual counts them for this kind
  const void* send = nullptr;  ///< may be MPI_IN_PLACE
  void* receive = nullptr;     ///< may be MPI_IN_PLACE
};

/// A collective that is ready to play. Data that MPI cannot handle in place is copied before or
/// after the calls; data that is too large for an MPI call is sent as messages.
struct CollectiveCall {
  std::optional<StridedCopy> before;
  std::vector<MpiCall> calls;
  ExchangeCall messages;
  std::optional<StridedCopy> after;
};
void run(const CollectiveCall& call, Player& player);

/// Returns the MPI calls of a collective. `stream` is the op's stream in the program, even if
/// streams are folded; it selects the communicator. `staging` is memory of staging_bytes() for that
/// stream; `own` provides the reductions that MPI lacks. Throws base::Error if the host cannot play
/// the op.
[[nodiscard]] CollectiveCall collective_call(const Resolver& resolver,
                                             const program::Collective& op,
                                             program::StreamId stream,
                                             const Communicators& communicators,
                                             std::uint64_t elements_per_call,
                                             std::span<std::byte> staging, OwnReductions& own);

/// Splits a message of `count` elements into messages of at most `elements_per_call` elements and
/// appends them; appends one message if `count` is 0.
void append_messages(std::vector<Message>& messages, Message whole, std::uint64_t count,
                     std::size_t element_size, std::uint64_t elements_per_call);

}  // namespace isoscale::executor::host
