// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/rows.cuh"

namespace isoscale::executor::cuda {
namespace {

/// Three passes over a row, all but the first from cache. Exponentials are taken twice: they cost
/// less than to keep them in memory.
template <class T>
__global__ void softmax(Extents extents, In<T> xs, Out<T> ys) {
  using Value = Compute<T>;
  for_each_row(extents, [&](std::uint64_t row, std::uint64_t matrix) {
    const In<T> x = xs.row(row, matrix);
    Value most = load(x.data[0]);
    for_each_column(
        extents, [&](const T& element) { most = Most{}(most, load(element)); }, x);
    most = over_block(most, Most{});
    Value sum = 0;
    for_each_column(
        extents, [&](const T& element) { sum += exp(load(element) - most); }, x);
    sum = over_block(sum, Sum{});
    for_each_column(
        extents, [=](const T& element, T& to) { to = rounded<T>(exp(load(element) - most) / sum); },
        x, ys.row(row, matrix));
  });
}

template <class T>
__global__ void softmax_gradient(Extents extents, In<T> y, In<T> dy, Out<T> dx) {
  using Value = Compute<T>;
  for_each_row(extents, [&](std::uint64_t row, std::uint64_t matrix) {
    Value dot = 0;
    for_each_column(
        extents, [&](const T& a, const T& b) { dot += load(a) * load(b); }, dy.row(row, matrix),
        y.row(row, matrix));
    dot = over_block(dot, Sum{});
    for_each_column(
        extents, [=](const T& a, const T& b, T& to) { to = rounded<T>(load(b) * (load(a) - dot)); },
        dy.row(row, matrix), y.row(row, matrix), dx.row(row, matrix));
  });
}

}  // namespace

cudaError_t start(const SoftmaxCall& call, cudaStream_t stream) {
  if (call.rows * call.batch == 0 || call.columns == 0) return cudaSuccess;
  return outcome(with_float(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    start_rows(softmax<T>, {call.rows, call.columns, call.batch}, stream, in<T>(call.x),
               out<T>(call.y));
    return true;
  }));
}

cudaError_t start(const SoftmaxGradientCall& call, cudaStream_t stream) {
  if (call.rows * call.batch == 0 || call.columns == 0) return cudaSuccess;
  return outcome(with_float(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    start_rows(softmax_gradient<T>, {call.rows, call.columns, call.batch}, stream, in<T>(call.y),
               in<T>(call.dy), out<T>(call.dx));
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
