// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include <variant>

#include "executor/cuda/gemm_plan.hpp"
#include "executor/cuda/kernels/checksum.hpp"
#include "executor/cuda/kernels/copy.hpp"
#include "executor/cuda/kernels/kernels.hpp"
#include "executor/cuda/kernels/lists.hpp"
#include "executor/cuda/kernels/put.hpp"
#include "executor/cuda/layer_call.hpp"
#include "executor/cuda/memory_advice.hpp"
#include "executor/cuda/nccl_call.hpp"

/// Ops of a program with everything looked up: what is left is to start them on a stream.
namespace isoscale::executor::cuda {

/// One cudaMemcpyAsync a piece, or one 2-D copy a matrix; between any two memories.
void launch(const StridedCopy& call, cudaStream_t stream);

/// All start their work on `stream` and throw CudaError when they cannot.
void launch(const FillCall& call, cudaStream_t stream);
void launch(const AddCall& call, cudaStream_t stream);
void launch(const CastCall& call, cudaStream_t stream);
void launch(const UpdateCall& call, cudaStream_t stream);
void launch(const SelectCall& call, cudaStream_t stream);
void launch(const SpreadCall& call, cudaStream_t stream);
void launch(const RowsCall& call, cudaStream_t stream);
void launch(const PutCall& call, cudaStream_t stream);
void launch(const ChecksumCall& call, cudaStream_t stream);
void launch(const CopyCall& call, cudaStream_t stream);

/// A fill of host memory: by the same kernel into GPU memory, then copied, so that every element is
/// what it would be there.
struct HostFillCall {
  FillCall fill;  ///< its dst is given by the launch
  std::byte* dst = nullptr;
  std::byte* staging = nullptr;  ///< in GPU memory
  std::size_t bytes = 0;         ///< of both
};
void launch(const HostFillCall& call, cudaStream_t stream);

using Call = std::variant<GemmCall, CollectiveCall, ExchangeCall, StridedCopy, CopyCall, AddCall,
                          CastCall, FillCall, HostFillCall, UpdateCall, NormCall, NormGradientCall,
                          ActivationCall, ActivationGradientCall, SoftmaxCall, SoftmaxGradientCall,
                          SelectCall, SpreadCall, RowsCall, PutCall, ChecksumCall, AdviseCall>;

}  // namespace isoscale::executor::cuda
