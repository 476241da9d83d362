// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/elements.cuh"
#include "executor/cuda/kernels/lists.hpp"

namespace isoscale::executor::cuda {
namespace {

/// A thread block owns a block of dst. The places of one list differ, so that its entries are added
/// side by side; lists follow each other: the sums do not depend on which thread was faster.
template <class T>
__global__ void spread(const T* values, const std::int32_t* places, T* dst, std::uint64_t count,
                       std::uint32_t block, std::uint32_t keep, std::uint32_t parts) {
  __shared__ Compute<T> sums[most_per_list_block];
  const std::uint64_t blocks = program::block_count(count, block);
  for (std::uint64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
    const std::uint64_t begin = b * block;
    const auto size = static_cast<std::uint32_t>(count - begin < block ? count - begin : block);
    for (std::uint32_t i = threadIdx.x; i < size; i += blockDim.x) sums[i] = 0;
    __syncthreads();
    for (std::uint32_t part = 0; part < parts; ++part) {
      const std::uint64_t first = (part * blocks + b) * keep;
      for (std::uint32_t i = threadIdx.x; i < keep; i += blockDim.x) {
        // A place of -1 lies in no block.
        const std::int64_t at = places[first + i] - static_cast<std::int64_t>(begin);
        if (at >= 0 && at < size) sums[at] += load(values[first + i]);
      }
      __syncthreads();
    }
    for (std::uint32_t i = threadIdx.x; i < size; i += blockDim.x) {
      dst[begin + i] = rounded<T>(sums[i]);
    }
    __syncthreads();
  }
}

}  // namespace

cudaError_t start(const SpreadCall& call, cudaStream_t stream) {
  if (call.count == 0) return cudaSuccess;
  if (!has_kernel(call)) return cudaErrorNotSupported;
  return outcome(with_float(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    const std::uint64_t blocks = program::block_count(call.count, call.block);
    start_kernel(spread<T>, static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks),
                 block_threads, stream, static_cast<const T*>(call.values), call.places,
                 static_cast<T*>(call.dst), call.count, call.block, call.keep, call.parts);
    return true;
  }));
}

bool has_kernel(const SpreadCall& call) {
  return call.block <= most_per_list_block && with_float(call.type, [](auto) { return true; });
}

}  // namespace isoscale::executor::cuda
