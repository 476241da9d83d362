// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/rows.cuh"

namespace isoscale::executor::cuda {
namespace {

/// Two passes over a row, the second from cache.
template <class T>
__global__ void norm(RowsOf<const T> x, RowsOf<const T> addend, RowsOf<T> sum, RowsOf<T> y,
                     Compute<T>* inverses, std::uint64_t columns, Compute<T> epsilon) {
  using Value = Compute<T>;
  for (std::uint64_t row = blockIdx.x; row < x.rows; row += gridDim.x) {
    const T* s = x(row);
    if (sum.exists()) {
      const T *const from = s, *const more = addend(row);
      T* const to = sum(row);
      for_each_column(columns,
                      [&](std::uint64_t i) { to[i] = rounded<T>(load(from[i]) + load(more[i])); });
      s = to;
    }
    const Value squares = row_sum<Value>(columns, [&](std::uint64_t i) {
      const Value value = load(s[i]);
      return value * value;
    });
    const Value inverse = 1 / sqrt(squares / static_cast<Value>(columns) + epsilon);
    if (threadIdx.x == 0) inverses[row] = inverse;
    T* const to = y(row);
    for_each_column(columns, [&](std::uint64_t i) { to[i] = rounded<T>(load(s[i]) * inverse); });
  }
}

template <class T>
__global__ void norm_gradient(RowsOf<const T> dy, RowsOf<const T> s, RowsOf<const T> addend,
                              RowsOf<T> dx, const Compute<T>* inverses, std::uint64_t columns) {
  using Value = Compute<T>;
  for (std::uint64_t row = blockIdx.x; row < dy.rows; row += gridDim.x) {
    const T *const dys = dy(row), *const ss = s(row);
    const T* const more = addend.exists() ? addend(row) : nullptr;
    const Value inverse = inverses[row];
    // mean(dy * y) * y = mean(dy * s) * inverse^2 * s
    const Value dot =
        row_sum<Value>(columns, [&](std::uint64_t i) { return load(dys[i]) * load(ss[i]); });
    const Value factor = dot / static_cast<Value>(columns) * inverse * inverse;
    T* const to = dx(row);
    for_each_column(columns, [&](std::uint64_t i) {
      const Value gradient = inverse * (load(dys[i]) - load(ss[i]) * factor);
      to[i] = rounded<T>(more == nullptr ? gradient : gradient + load(more[i]));
    });
  }
}

}  // namespace

cudaError_t start(const NormCall& call, cudaStream_t stream) {
  if (call.rows == 0 || call.columns == 0) return cudaSuccess;
  return outcome(with_float(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    start_kernel(norm<T>, row_blocks(call.rows), row_threads(call.columns), stream,
                 rows_of<const T>(call.x, call.rows), rows_of<const T>(call.addend, call.rows),
                 rows_of<T>(call.sum, call.rows), rows_of<T>(call.y, call.rows),
                 static_cast<Compute<T>*>(call.inverse), call.columns,
                 static_cast<Compute<T>>(call.epsilon));
    return true;
  }));
}

cudaError_t start(const NormGradientCall& call, cudaStream_t stream) {
  if (call.rows == 0 || call.columns == 0) return cudaSuccess;
  return outcome(with_float(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    start_kernel(norm_gradient<T>, row_blocks(call.rows), row_threads(call.columns), stream,
                 rows_of<const T>(call.dy, call.rows), rows_of<const T>(call.s, call.rows),
                 rows_of<const T>(call.addend, call.rows), rows_of<T>(call.dx, call.rows),
                 static_cast<const Compute<T>*>(call.inverse), call.columns);
    return true;
  }));
}

bool has_kernel(const NormCall& call) {
  return with_float(call.type, [](auto) { return true; });
}
bool has_kernel(const NormGradientCall& call) {
  return with_float(call.type, [](auto) { return true; });
}

}  // namespace isoscale::executor::cuda
