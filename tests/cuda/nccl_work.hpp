// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "program/dtypes_and_buffers.hpp"
#include "tests/cuda/standin.hpp"

/// This code does over MPI what NCCL does on a GPU.
namespace isoscale::standin {

/// Memory that a communicator was told of.
struct Range {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;

  [[nodiscard]] bool holds(const void* data, std::size_t count) const {
    const auto* const at = static_cast<const std::byte*>(data);
    return at >= begin && at + count <= begin + bytes;
  }
};

/// A communicator is one of these.
struct Ring {
  MPI_Comm mpi = MPI_COMM_NULL;
  int rank = 0, size = 1, children = 0;
  int looks_until_ready = 0;
  std::uint64_t number = 1;  ///< alike on all its ranks
  std::string name;
  bool failing = false, endless = false, aborted = false;
  std::uint64_t issued = 0, finished = 0;  ///< kernels: they run in the order they were issued in
  std::map<int, int> sent, received;       ///< messages to and from each rank
  std::string algorithm, protocol;         ///< NCCL_ALGO and NCCL_PROTO when it was made
  std::map<void*, Range> windows, buffers;

  /// Returns whether the kernel whose turn this is will never run.
  [[nodiscard]] bool is_stuck(std::uint64_t turn) const {
    return failing && issued > turn && turn >= machine().settings.failing_after;
  }
};

enum class CallKind : std::uint8_t {
  send,
  receive,
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter
};

struct Call {
  CallKind kind = CallKind::send;
  const void* send = nullptr;
  void* receive = nullptr;
  std::uint64_t count = 0;  ///< as NCCL counts
  int peer = 0;             ///< or root
  ncclRedOp_t operation = ncclSum;
  std::shared_ptr<Ring> ring{};
  program::DType type = program::DType::u8;
  cudaStream_t stream = nullptr;

  [[nodiscard]] std::uint64_t bytes() const { return count * program::element_size(type); }
};

/// The kernel of calls of one group on one communicator: they begin together and end together.
[[nodiscard]] WorkPointer kernel_of(std::shared_ptr<Ring> ring, std::vector<Call> calls);

/// Forgets the registrations as if each had been taken back.
void forget_registrations(Ring& ring);

[[nodiscard]] std::optional<program::DType> type_of(ncclDataType_t type);

}  // namespace isoscale::standin

struct ncclComm {
  std::shared_ptr<isoscale::standin::Ring> ring;
};
