// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <variant>

#include "executor/cuda/gemm.hpp"
#include "executor/cuda/kernels/element_kernels.hpp"
#include "executor/cuda/kernels/layer_kernels.hpp"
#include "executor/cuda/kernels/list_kernels.hpp"
#include "executor/cuda/kernels/put.hpp"
#include "executor/cuda/nccl_calls.hpp"
#include "executor/resolver.hpp"
#include "program/op.hpp"

/// Prepared calls: ops of a program with everything looked up, which only need to be started on a
/// stream.
namespace isoscale::executor::cuda {

// Each launch starts its work on `stream` and throws CudaError if it cannot.

/// Starts the copy by one cudaMemcpyAsync per piece, or by one 2-D copy per matrix, between
/// memories of any kind.
void launch(const StridedCopy& call, cudaStream_t stream);
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
void launch(const NormCall& call, cudaStream_t stream);
void launch(const NormGradientCall& call, cudaStream_t stream);
void launch(const ActivationCall& call, cudaStream_t stream);
void launch(const ActivationGradientCall& call, cudaStream_t stream);
void launch(const SoftmaxCall& call, cudaStream_t stream);
void launch(const SoftmaxGradientCall& call, cudaStream_t stream);

/// A fill of host memory: the kernel fills GPU memory, which is then copied, so that elements are
/// the same as in a fill of GPU memory.
struct HostFillCall {
  FillCall fill;  ///< its dst is set at launch
  std::byte* dst = nullptr;
  std::byte* staging = nullptr;  ///< in GPU memory
  std::size_t bytes = 0;         ///< of dst and staging
};
void launch(const HostFillCall& call, cudaStream_t stream);

/// A call for program::Advise. A prefetch runs on the stream; other advice takes effect before
/// launch() returns.
struct AdviseCall {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  program::Advice advice = program::Advice::prefetch_device;
  int device = 0;
};
void launch(const AdviseCall& call, cudaStream_t stream);

using Call = std::variant<GemmCall, CollectiveCall, ExchangeCall, StridedCopy, CopyCall, AddCall,
                          CastCall, FillCall, HostFillCall, UpdateCall, NormCall, NormGradientCall,
                          ActivationCall, ActivationGradientCall, SoftmaxCall, SoftmaxGradientCall,
                          SelectCall, SpreadCall, RowsCall, PutCall, ChecksumCall, AdviseCall>;

}  // namespace isoscale::executor::cuda
