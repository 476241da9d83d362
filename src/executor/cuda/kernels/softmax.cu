// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/rows.cuh"

namespace isoscale::executor::cuda {
namespace {

/// Three passes over a row, all but the first from cache. Exponentials are taken twice: they cost
/// less than to keep them in memory.
template <class T>
__global__ void softmax(RowsOf<const T> x, RowsOf<T> y, std::uint64_t rows, std::uint64_t columns) {
  using Value = Compute<T>;
  for (std::uint64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* const from = x(row);
    Value mine = load(from[0]);
    for_each_column(columns, [&](std::uint64_t i) { mine = Most{}(mine, load(from[i])); });
    const Value most = over_block(mine, Most{});
    const Value sum =
        row_sum<Value>(columns, [&](std::uint64_t i) { return exp(load(from[i]) - most); });
    T* const to = y(row);
    for_each_column(columns,
                    [&](std::uint64_t i) { to[i] = rounded<T>(exp(load(from[i]) - most) / sum); });
  }
}

template <class T>
__global__ void softmax_gradient(RowsOf<const T> y, RowsOf<const T> dy, RowsOf<T> dx,
                                 std::uint64_t rows, std::uint64_t columns) {
  using Value = Compute<T>;
  for (std::uint64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const T *const ys = y(row), *const dys = dy(row);
    const Value dot =
        row_sum<Value>(columns, [&](std::uint64_t i) { return load(dys[i]) * load(ys[i]); });
    T* const to = dx(row);
    for_each_column(
        columns, [&](std::uint64_t i) { to[i] = rounded<T>(load(ys[i]) * (load(dys[i]) - dot)); });
  }
}

}  // namespace

cudaError_t start(const SoftmaxCall& call, cudaStream_t stream) {
  const std::uint64_t rows = call.rows * call.batch;
  if (rows == 0 || call.columns == 0) return cudaSuccess;
  return outcome(with_float(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    start_kernel(softmax<T>, row_blocks(rows), row_threads(call.columns), stream,
                 rows_of<const T>(call.x, call.rows), rows_of<T>(call.y, call.rows), rows,
                 call.columns);
    return true;
  }));
}

cudaError_t start(const SoftmaxGradientCall& call, cudaStream_t stream) {
  const std::uint64_t rows = call.rows * call.batch;
  if (rows == 0 || call.columns == 0) return cudaSuccess;
  return outcome(with_float(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    start_kernel(softmax_gradient<T>, row_blocks(rows), row_threads(call.columns), stream,
                 rows_of<const T>(call.y, call.rows), rows_of<const T>(call.dy, call.rows),
                 rows_of<T>(call.dx, call.rows), rows, call.columns);
    return true;
  }));
}

bool has_kernel(const SoftmaxCall& call) {
  return with_float(call.type, [](auto) { return true; });
}
bool has_kernel(const SoftmaxGradientCall& call) {
  return with_float(call.type, [](auto) { return true; });
}

}  // namespace isoscale::executor::cuda
