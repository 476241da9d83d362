// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/handle.hpp"
#include "comm/communicator.hpp"
#include "executor/point_requirements.hpp"
#include "program/op.hpp"

/// The MPI objects that a rank needs: communicators, element types and reductions.
namespace isoscale::executor::host {

/// The communicators of one rank.
class Communicators {
 public:
  /// Collective over `point`: makes the communicators that `needs` lists, in the same order on all
  /// ranks.
  Communicators(CommunicationNeeds needs, const mesh::Shape& mesh, const comm::Communicator& point);

  [[nodiscard]] MPI_Comm collective(mesh::AxisSet axes, program::StreamId stream) const;
  [[nodiscard]] MPI_Comm exchange(mesh::Axis axis) const;

  /// Returns the tag of a link's message number `sequence` in a play. Links along one axis that may
  /// join the same two ranks (+1 and -1 in a group of two) have different tags. Tags are at most
  /// 32767, the largest that every MPI allows; they repeat after thousands of messages, whose order
  /// MPI keeps.
  [[nodiscard]] int tag(mesh::Axis axis, std::int32_t sender_offset, std::uint64_t sequence) const;

  /// Drops all communicators without freeing them, since peers may be stuck in them.
  void abandon() noexcept;

 private:
  CommunicationNeeds needs_;
  std::vector<comm::Communicator> collectives_;
  std::map<mesh::Axis, comm::Communicator> exchanges_;
};

struct OperationTraits {
  using type = MPI_Op;
  static type null() { return MPI_OP_NULL; }
  static void free(type operation) noexcept;
};

/// Reductions that MPI lacks or computes in another way than NCCL. f16 and bf16 are sent as 16-bit
/// integers and added in f32; each sum is rounded to the type, as in NCCL. Sums of 8-bit integers
/// must wrap as in NCCL, but Open MPI 4.1 saturates them in vector instructions and wraps only the
/// remaining elements. Minimum and maximum of unsigned bytes are included since MPICH 4.0 compares
/// the bytes as if they were signed.
class OwnReductions {
 public:
  /// Returns the operation, which is made when first needed and exists as long as this object.
  [[nodiscard]] MPI_Op operation(program::Reduction reduction, program::DType type);

 private:
  std::map<std::pair<program::Reduction, program::DType>, base::Handle<OperationTraits>> made_;
};

/// Returns MPI's type for elements that are only moved; types that MPI does not have are sent as
/// integers of the same size.
[[nodiscard]] MPI_Datatype mpi_type(program::DType type);
/// Returns the operation of a reduction. Throws base::Error for types that neither MPI nor `own`
/// can reduce.
[[nodiscard]] MPI_Op mpi_operation(program::Reduction reduction, program::DType type,
                                   OwnReductions& own);

}  // namespace isoscale::executor::host
