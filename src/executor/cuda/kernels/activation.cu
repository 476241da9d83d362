// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/rows.cuh"

namespace isoscale::executor::cuda {
namespace {

using program::ActivationKind;

constexpr double inverse_sqrt_2 = 0.70710678118654752440,
                 inverse_sqrt_2_pi = 0.39894228040143267794;

/// The normal distribution: gelu(x) = x * distribution(x).
template <class Value>
__device__ Value distribution(Value x) {
  return (1 + erf(x * static_cast<Value>(inverse_sqrt_2))) / 2;
}
template <class Value>
__device__ Value density(Value x) {
  return static_cast<Value>(inverse_sqrt_2_pi) * exp(-x * x / 2);
}
template <class Value>
__device__ Value logistic(Value x) {
  return 1 / (1 + exp(-x));
}

/// y may be an operand: each element is read before it is written, by the same thread.
template <class T>
__global__ void gelu(RowsOf<const T> x, RowsOf<T> y, std::uint64_t columns) {
  const std::uint64_t count = x.rows * columns;
  for (std::uint64_t e = first_element(); e < count; e += element_step()) {
    const std::uint64_t row = e / columns, i = e % columns;
    const Compute<T> at = load(x(row)[i]);
    y(row)[i] = rounded<T>(at * distribution(at));
  }
}

template <class T>
__global__ void swiglu(RowsOf<const T> x, RowsOf<const T> up, RowsOf<T> y, std::uint64_t columns) {
  const std::uint64_t count = x.rows * columns;
  for (std::uint64_t e = first_element(); e < count; e += element_step()) {
    const std::uint64_t row = e / columns, i = e % columns;
    const Compute<T> at = load(x(row)[i]);
    y(row)[i] = rounded<T>(load(up(row)[i]) * at * logistic(at));
  }
}

template <class T>
__global__ void gelu_gradient(RowsOf<const T> dy, RowsOf<const T> x, RowsOf<T> dx,
                              std::uint64_t columns) {
  const std::uint64_t count = x.rows * columns;
  for (std::uint64_t e = first_element(); e < count; e += element_step()) {
    const std::uint64_t row = e / columns, i = e % columns;
    const Compute<T> at = load(x(row)[i]), from = load(dy(row)[i]);
    dx(row)[i] = rounded<T>(from * (distribution(at) + at * density(at)));
  }
}

template <class T>
__global__ void swiglu_gradient(RowsOf<const T> dy, RowsOf<const T> x, RowsOf<const T> up,
                                RowsOf<T> dx, RowsOf<T> dup, std::uint64_t columns) {
  const std::uint64_t count = x.rows * columns;
  for (std::uint64_t e = first_element(); e < count; e += element_step()) {
    const std::uint64_t row = e / columns, i = e % columns;
    const Compute<T> at = load(x(row)[i]), from = load(dy(row)[i]), other = load(up(row)[i]);
    const Compute<T> gate = logistic(at);
    dx(row)[i] = rounded<T>(from * other * gate * (1 + at * (1 - gate)));
    dup(row)[i] = rounded<T>(from * at * gate);
  }
}

}  // namespace

cudaError_t start(const ActivationCall& call, cudaStream_t stream) {
  const std::uint64_t count = call.rows * call.columns;
  if (count == 0) return cudaSuccess;
  return outcome(with_float(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto x = rows_of<const T>(call.x, call.rows);
    const auto y = rows_of<T>(call.y, call.rows);
    if (call.kind == ActivationKind::gelu) {
      start_kernel(gelu<T>, blocks_for(count), block_threads, stream, x, y, call.columns);
    } else {
      start_kernel(swiglu<T>, blocks_for(count), block_threads, stream, x,
                   rows_of<const T>(call.up, call.rows), y, call.columns);
    }
    return true;
  }));
}

cudaError_t start(const ActivationGradientCall& call, cudaStream_t stream) {
  const std::uint64_t count = call.rows * call.columns;
  if (count == 0) return cudaSuccess;
  return outcome(with_float(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto dy = rows_of<const T>(call.dy, call.rows), x = rows_of<const T>(call.x, call.rows);
    const auto dx = rows_of<T>(call.dx, call.rows);
    if (call.kind == ActivationKind::gelu) {
      start_kernel(gelu_gradient<T>, blocks_for(count), block_threads, stream, dy, x, dx,
                   call.columns);
    } else {
      start_kernel(swiglu_gradient<T>, blocks_for(count), block_threads, stream, dy, x,
                   rows_of<const T>(call.up, call.rows), dx, rows_of<T>(call.dup, call.rows),
                   call.columns);
    }
    return true;
  }));
}

bool has_kernel(const ActivationCall& call) {
  return with_float(call.type, [](auto) { return true; });
}
bool has_kernel(const ActivationGradientCall& call) {
  return with_float(call.type, [](auto) { return true; });
}

}  // namespace isoscale::executor::cuda
