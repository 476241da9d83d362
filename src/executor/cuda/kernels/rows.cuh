// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "executor/cuda/kernels/elements.cuh"
#include "executor/cuda/kernels/layer_kernels.hpp"

/// What kernels with a block a row have in common. A thread reads and writes only columns of its
/// own, so that a result may lie where an operand does.
namespace isoscale::executor::cuda {

/// A warp for short rows, at most block_threads for long ones.
inline unsigned row_threads(std::uint64_t columns) {
  const std::uint64_t warps = (columns + warp_threads - 1) / warp_threads;
  const std::uint64_t most = block_threads / warp_threads;
  return warp_threads * static_cast<unsigned>(warps < 1 ? 1 : warps > most ? most : warps);
}
inline unsigned row_blocks(std::uint64_t rows) {
  return static_cast<unsigned>(rows > most_blocks ? most_blocks : rows);
}

/// The rows of a matrix, all matrices of a batch one after the other.
template <class T>
struct RowsOf {
  T* data;
  std::uint64_t row_stride, batch_stride, rows;

  [[nodiscard]] __device__ bool exists() const { return data != nullptr; }
  [[nodiscard]] __device__ T* operator()(std::uint64_t row) const {
    return data + row / rows * batch_stride + row % rows * row_stride;
  }
};

template <class T>
RowsOf<T> rows_of(const MatrixAt& matrix, std::uint64_t rows) {
  return {static_cast<T*>(matrix.data), matrix.row_stride, matrix.batch_stride, rows};
}

/// What all threads of the block have together, in every one of them: by warps, then over these,
/// each time in one order.
template <class Value, class Join>
__device__ Value over_block(Value mine, const Join& join) {
  __shared__ Value of_warp[block_threads / warp_threads];
  mine = over_warp(mine, join);
  __syncthreads();  // all have read what an earlier call left
  if (lane() == 0) of_warp[threadIdx.x / warp_threads] = mine;
  __syncthreads();
  Value all = of_warp[0];
  for (unsigned warp = 1; warp < blockDim.x / warp_threads; ++warp) all = join(all, of_warp[warp]);
  return all;
}

/// Calls visit(column) for each column of this thread.
template <class Visit>
__device__ void for_each_column(std::uint64_t columns, const Visit& visit) {
  for (std::uint64_t i = threadIdx.x; i < columns; i += blockDim.x) visit(i);
}

/// The sum of term(column) over a row.
template <class Value, class Term>
__device__ Value row_sum(std::uint64_t columns, const Term& term) {
  Value mine = 0;
  for_each_column(columns, [&](std::uint64_t i) { mine += term(i); });
  return over_block(mine, Sum{});
}

}  // namespace isoscale::executor::cuda
