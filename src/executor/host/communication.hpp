// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/handle.hpp"
#include "comm/communicator.hpp"
#include "executor/operand_addresses.hpp"
#include "executor/point_requirements.hpp"
#include "program/op.hpp"

/// The MPI objects that a rank needs (communicators, element types and reductions), and the ops
/// that communicate through MPI.
namespace isoscale::executor::host {

/// The communicators of one rank.
class Communicators {
 public:
  /// Collective over `point`: makes the communicators that `needs` lists, in the same order on all
  /// ranks.
  Communicators(const CommunicationNeeds& needs, const mesh::Shape& mesh,
                const comm::Communicator& point);

  [[nodiscard]] MPI_Comm collective(mesh::AxisSet axes, program::StreamId stream) const {
    return collectives_.at({axes, stream}).get();
  }
  [[nodiscard]] MPI_Comm exchange(mesh::Axis axis) const { return exchanges_.at(axis).get(); }

  /// Returns the MPI tag of a message. A link carries the messages from a rank to the one that is
  /// `sender_offset` further along `axis`; `sequence` counts the messages of a link in a section.
  /// In a group of two ranks, the links with offset +1 and -1 join the same two ranks, so they get
  /// different tags. Tags are at most 32767, the largest value that every MPI allows; the links of
  /// an axis share this range equally. The tags of a link repeat when its share is used up, which
  /// is safe since MPI delivers messages with equal tags in order.
  [[nodiscard]] int tag(mesh::Axis axis, std::int32_t sender_offset, std::uint64_t sequence) const;

  /// Drops all communicators without freeing them, since peers may be stuck in them.
  void abandon() noexcept;

 private:
  std::map<std::pair<mesh::AxisSet, program::StreamId>, comm::Communicator> collectives_;
  std::map<mesh::Axis, comm::Communicator> exchanges_;
  /// For each axis with messages, the offsets from sender to receiver, one for each link.
  std::map<mesh::Axis, std::set<std::int32_t>> offsets_;
};

struct OperationTraits {
  using type = MPI_Op;
  static type null() { return MPI_OP_NULL; }
  static void free(type operation) noexcept;
};

/// Reductions that MPI lacks or computes in another way than NCCL. f16 and bf16 are sent as 16-bit
/// integers and reduced in f32; each result is rounded to the type, as in NCCL. Sums of 8-bit
/// integers must wrap around as in NCCL, but Open MPI 4.1 saturates the elements that it adds with
/// vector instructions. Minimum and maximum of unsigned bytes are included since MPICH 4.0 compares
/// the bytes as if they were signed.
class OwnReductions {
 public:
  /// Returns the MPI operation. It is made when it is first asked for, and exists as long as this
  /// object.
  [[nodiscard]] MPI_Op operation(program::Reduction reduction, program::DType type);

 private:
  std::map<std::pair<program::Reduction, program::DType>, base::Handle<OperationTraits>> made_;
};

/// Returns the MPI type with which elements are sent and reduced. Types that MPI does not have
/// (f16, bf16 and fp8) are sent as unsigned integers of the same size.
[[nodiscard]] MPI_Datatype mpi_type(program::DType type);
/// Returns the MPI operation of a reduction. Throws base::Error for types that neither MPI nor
/// `own` can reduce.
[[nodiscard]] MPI_Op mpi_operation(program::Reduction reduction, program::DType type,
                                   OwnReductions& own);

struct Player;

struct Message {
  std::byte* data = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_BYTE;
  int peer = 0;
  int tag = 0;
  MPI_Comm communicator = MPI_COMM_NULL;
};

/// The messages of one exchange. All of them are started before the rank waits for the first.
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
  int count = 0;               ///< elements; the count argument of this MPI call
  const void* send = nullptr;  ///< may be MPI_IN_PLACE
  void* receive = nullptr;     ///< may be MPI_IN_PLACE
};

/// A collective that is ready to start. `before` and `after` are copies made before and after the
/// MPI calls, of data that MPI cannot read or write where it lies in the buffers. Parts of unequal
/// size, or too large for an MPI collective, are sent as `messages` instead of `calls`.
struct CollectiveCall {
  std::optional<StridedCopy> before;
  std::vector<MpiCall> calls;
  ExchangeCall messages;
  std::optional<StridedCopy> after;
};
void run(const CollectiveCall& call, Player& player);

/// Prepares a collective op for this rank. `stream` is the op's stream in the program, which
/// selects the communicator even if the executor runs all streams on one thread. No MPI call gets
/// more than `elements_per_call` elements. `staging` is that stream's memory for copies, of the
/// size that staging_bytes() returns. `own` has the reductions that MPI lacks. Throws base::Error
/// if the host cannot execute the op.
[[nodiscard]] CollectiveCall collective_call(const Resolver& resolver,
                                             const program::Collective& op,
                                             program::StreamId stream,
                                             const Communicators& communicators,
                                             std::uint64_t elements_per_call,
                                             std::span<std::byte> staging, OwnReductions& own);

/// Splits the message `whole` of `count` elements into messages of at most `elements_per_call`
/// elements, and appends these to `messages`. If `count` is 0, it appends one empty message.
void append_messages(std::vector<Message>& messages, Message whole, std::uint64_t count,
                     std::size_t element_size, std::uint64_t elements_per_call);

}  // namespace isoscale::executor::host
