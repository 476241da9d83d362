// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/rows.cuh"

namespace isoscale::executor::cuda {
namespace {

/// Two passes over a row, the second from cache.
template <class T>
__global__ void norm(Extents extents, In<T> x, In<T> addend, Out<T> sum, Out<T> y,
                     Compute<T>* inverses, Compute<T> epsilon) {
  using Value = Compute<T>;
  for_each_row(extents, [&](std::uint64_t row, std::uint64_t /*matrix*/) {
    Value squares = 0;
    const auto square = [&](const T& element) {
      const Value value = load(element);
      squares += value * value;
    };
    if (sum.exists()) {
      for_each_column(
          extents,
          [&](const T& a, const T& b, T& both) {
            both = rounded<T>(load(a) + load(b));
            square(both);
          },
          x.row(row), addend.row(row), sum.row(row));
    } else {
      for_each_column(extents, square, x.row(row));
    }
    squares = over_block(squares, Sum{});
    const Value inverse = 1 / sqrt(squares / static_cast<Value>(extents.columns) + epsilon);
    if (threadIdx.x == 0) inverses[row] = inverse;
    const In<T> s = sum.exists() ? sum.row(row).input() : x.row(row);
    for_each_column(
        extents, [=](const T& element, T& to) { to = rounded<T>(load(element) * inverse); }, s,
        y.row(row));
  });
}

template <class T>
__global__ void norm_gradient(Extents extents, In<T> dy, In<T> s, In<T> addend, Out<T> dx,
                              const Compute<T>* inverses) {
  using Value = Compute<T>;
  for_each_row(extents, [&](std::uint64_t row, std::uint64_t /*matrix*/) {
    const Value inverse = inverses[row];
    // mean(dy * y) * y = mean(dy * s) * inverse^2 * s
    Value dot = 0;
    for_each_column(
        extents, [&](const T& a, const T& b) { dot += load(a) * load(b); }, dy.row(row),
        s.row(row));
    dot = over_block(dot, Sum{});
    const Value factor = dot / static_cast<Value>(extents.columns) * inverse * inverse;
    const auto gradient = [=](const T& a, const T& b) {
      return inverse * (load(a) - load(b) * factor);
    };
    if (addend.exists()) {
      for_each_column(
          extents,
          [&](const T& a, const T& b, const T& more, T& to) {
            to = rounded<T>(gradient(a, b) + load(more));
          },
          dy.row(row), s.row(row), addend.row(row), dx.row(row));
    } else {
      for_each_column(
          extents, [&](const T& a, const T& b, T& to) { to = rounded<T>(gradient(a, b)); },
          dy.row(row), s.row(row), dx.row(row));
    }
  });
}

}  // namespace

cudaError_t start(const NormCall& call, cudaStream_t stream) {
  if (call.rows == 0 || call.columns == 0) return cudaSuccess;
  return outcome(with_float(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    start_rows(norm<T>, {call.rows, call.columns}, stream, in<T>(call.x), in<T>(call.addend),
               out<T>(call.sum), out<T>(call.y), static_cast<Compute<T>*>(call.inverse),
               static_cast<Compute<T>>(call.epsilon));
    return true;
  }));
}

cudaError_t start(const NormGradientCall& call, cudaStream_t stream) {
  if (call.rows == 0 || call.columns == 0) return cudaSuccess;
  return outcome(with_float(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    start_rows(norm_gradient<T>, {call.rows, call.columns}, stream, in<T>(call.dy), in<T>(call.s),
               in<T>(call.addend), out<T>(call.dx), static_cast<const Compute<T>*>(call.inverse));
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
