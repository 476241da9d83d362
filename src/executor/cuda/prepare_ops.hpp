// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include "executor/cuda/communicators.hpp"
#include "executor/cuda/errors_and_handles.hpp"
#include "executor/cuda/gemm.hpp"
#include "executor/cuda/kernels/put.hpp"
#include "executor/cuda/nccl_calls.hpp"
#include "executor/resolver.hpp"

/// Prepares ops, except for GEMMs; everything that they need is looked up. All functions throw
/// base::Error if the device cannot play the op.
namespace isoscale::executor::cuda {

/// Starts kernels or copies on a stream; throws CudaError if it cannot.
using Launch = std::function<void(cudaStream_t)>;

/// An op that is ready to start. The kinds that are inspected after they are prepared have a call
/// of their own.
using Call = std::variant<Launch, GemmCall, CollectiveCall, ExchangeCall, PutCall>;
/// Starts an op on a stream.
void launch(const Call& call, cudaStream_t stream);

/// `barrier` is a byte of device memory that a barrier reduces.
[[nodiscard]] CollectiveCall collective_call(const Resolver& resolver,
                                             const program::Collective& op, ncclComm_t communicator,
                                             void* barrier);
[[nodiscard]] ExchangeCall exchange_call(const Resolver& resolver, const program::Exchange& op,
                                         const Communicators& communicators);

/// The arguments of an op besides its operands.
struct LocalArguments {
  unsigned* largest = nullptr;   ///< of a Cast: a word of device memory that only this op uses
  void* staging = nullptr;       ///< of a Fill: device memory of host_fill_bytes() bytes
  Powers powers = Powers::keep;  ///< of an Update
  const std::uint32_t* from = nullptr;  ///< of Rows: a copy of the op's table in device memory
};
/// Prepares an op that neither communicates nor is a GEMM.
[[nodiscard]] Launch prepare_local(const Resolver& resolver, const program::Payload& op,
                                   const LocalArguments& further);
/// Returns the size of the staging memory of a fill of host memory; 0 for other fills.
[[nodiscard]] units::Bytes host_fill_bytes(const Resolver& resolver, const program::Fill& op);

/// Returns new device memory with a copy of the words.
[[nodiscard]] DeviceMemory upload(const std::vector<std::uint32_t>& words);

}  // namespace isoscale::executor::cuda
