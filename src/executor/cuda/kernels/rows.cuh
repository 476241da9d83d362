// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "executor/cuda/kernels/kernels.hpp"
#include "executor/cuda/kernels/vectors.cuh"

/// The common parts of kernels with one block per row. Each thread reads and writes only its own
/// columns, so that a result may overwrite an operand.
namespace isoscale::executor::cuda {

/// Calls launch(extents, Type<T>{}) for an op on matrices of floating types, which all have the
/// same extents.
template <class Op, class Launch>
cudaError_t start_typed(const Arguments<Op>& call, const Launch& launch) {
  Extents extents{call.op.rows, call.op.columns};
  if constexpr (requires { call.op.batch; }) extents.batch = call.op.batch;
  if (extents.rows * extents.columns * extents.batch == 0) return cudaSuccess;
  return outcome(with_float(call.type, [&](auto type) {
    launch(extents, type);
    return true;
  }));
}

/// Starts a kernel with one block per row, from one warp for short rows up to block_threads threads
/// for long ones.
template <class... Parameters, class... Arguments>
void start_rows(void (*kernel)(Extents, Parameters...), Extents extents, cudaStream_t stream,
                const Arguments&... arguments) {
  extents = packed(extents, arguments...);
  constexpr unsigned pack = pack_of<Arguments...>();
  const std::uint64_t of_row = std::max(extents.packs, extents.columns - extents.packs * pack);
  const std::uint64_t warps = (of_row + warp_threads - 1) / warp_threads;
  const auto threads = static_cast<unsigned>(
      warp_threads * std::min<std::uint64_t>(warps, block_threads / warp_threads));
  dim3 grid{static_cast<unsigned>(std::min<std::uint64_t>(extents.rows, most_blocks))};
  grid.y = static_cast<unsigned>(std::min<std::uint64_t>(extents.batch, most_blocks / grid.x));
  start_kernel(kernel, grid, threads, stream, extents, arguments...);
}

/// Calls visit(row, matrix) for each row that this block computes.
template <class Visit>
__device__ void for_each_row(const Extents& extents, const Visit& visit) {
  for (std::uint64_t matrix = blockIdx.y; matrix < extents.batch; matrix += gridDim.y) {
    for (std::uint64_t row = blockIdx.x; row < extents.rows; row += gridDim.x) visit(row, matrix);
  }
}

/// Returns, in every thread of the block, the combination of the values of all its threads: first
/// within warps, then over the warps, always in the same order.
template <class Value, class Join>
__device__ Value over_block(Value mine, const Join& join) {
  __shared__ Value of_warp[block_threads / warp_threads];
  mine = over_warp(mine, join);
  __syncthreads();  // all threads have read the previous call's result
  if (lane() == 0) of_warp[threadIdx.x / warp_threads] = mine;
  __syncthreads();
  Value all = of_warp[0];
  for (unsigned warp = 1; warp < blockDim.x / warp_threads; ++warp) all = join(all, of_warp[warp]);
  return all;
}

/// Calls op(element of each row ...) for each column that this thread computes.
template <class Op, class... O>
__device__ void for_each_column(const Extents& extents, const Op& op, const O&... rows) {
  for_each_in_row(extents.columns, extents.packs, threadIdx.x, blockDim.x, op, rows...);
}

}  // namespace isoscale::executor::cuda
