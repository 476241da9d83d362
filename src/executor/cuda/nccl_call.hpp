// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdint>
#include <vector>

#include "executor/resolver.hpp"
#include "program/op.hpp"

namespace isoscale::executor::cuda {

/// A collective with everything looked up. Those that NCCL has no call for are groups of messages.
struct CollectiveCall {
  program::CollectiveKind kind = program::CollectiveKind::barrier;
  CollectiveData data;
  ncclComm_t communicator = nullptr;
  ncclDataType_t type = ncclUint8;
  ncclRedOp_t operation = ncclSum;
  int root = 0;
  std::vector<std::uint64_t> send_counts{}, receive_counts{};  ///< of an uneven all_to_all
};
/// Starts it on `stream`. Throws NcclError.
void launch(const CollectiveCall& call, cudaStream_t stream);
/// Whether NCCL has no call for it.
[[nodiscard]] bool is_made_of_messages(program::CollectiveKind kind);
/// Throws base::Error where NCCL cannot do in place what MPI can.
void require_possible(const CollectiveCall& call);

struct Message {
  program::Direction direction = program::Direction::send;
  std::byte* data = nullptr;
  std::uint64_t count = 0;
  ncclDataType_t type = ncclUint8;
  int peer = 0;  ///< in the communicator
  ncclComm_t communicator = nullptr;
};

/// Messages of one group call: they start together and end together.
struct ExchangeCall {
  std::vector<Message> messages;
};
void launch(const ExchangeCall& call, cudaStream_t stream);

[[nodiscard]] ncclRedOp_t nccl_operation(program::Reduction reduction);

}  // namespace isoscale::executor::cuda
