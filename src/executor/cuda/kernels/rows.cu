// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/elements.cuh"
#include "executor/cuda/kernels/lists.hpp"

namespace isoscale::executor::cuda {
namespace {

/// A thread block a row: its threads read and write neighbouring elements.
template <class T>
__global__ void sum_rows(const T* src, std::uint64_t src_row, T* dst, std::uint64_t dst_row,
                         const std::uint32_t* from, std::uint64_t rows, std::uint64_t columns,
                         std::uint32_t each, Compute<T> scale) {
  for (std::uint64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const std::uint32_t* const indices = from + row * each;
    for (std::uint64_t column = threadIdx.x; column < columns; column += blockDim.x) {
      Compute<T> sum = 0;
      for (std::uint32_t i = 0; i < each; ++i) {
        if (indices[i] == program::Rows::no_row) continue;
        sum += load(src[indices[i] * src_row + column]);
      }
      dst[row * dst_row + column] = rounded<T>(sum * scale);
    }
  }
}

}  // namespace

cudaError_t start(const RowsCall& call, cudaStream_t stream) {
  if (call.rows * call.columns == 0) return cudaSuccess;
  return outcome(with_float(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto blocks = static_cast<unsigned>(call.rows < most_blocks ? call.rows : most_blocks);
    start_kernel(sum_rows<T>, blocks, block_threads, stream, static_cast<const T*>(call.src),
                 call.src_row, static_cast<T*>(call.dst), call.dst_row, call.from, call.rows,
                 call.columns, call.each, static_cast<Compute<T>>(call.scale));
    return true;
  }));
}

bool has_kernel(const RowsCall& call) {
  return with_float(call.type, [](auto) { return true; });
}

}  // namespace isoscale::executor::cuda
