// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/elements.cuh"
#include "executor/cuda/kernels/kernels.hpp"

namespace isoscale::executor::cuda {
namespace {

/// dst may be a or b: each element is read before it is written, by the same thread.
template <class T>
__global__ void add(const T* a, const T* b, T* dst, std::uint64_t rows, std::uint64_t columns,
                    std::uint64_t a_row, std::uint64_t b_row, std::uint64_t dst_row,
                    Compute<T> scale) {
  const std::uint64_t count = rows * columns;
  for (std::uint64_t e = first_element(); e < count; e += element_step()) {
    const std::uint64_t row = e / columns, column = e % columns;
    dst[row * dst_row + column] =
        rounded<T>(load(a[row * a_row + column]) + scale * load(b[row * b_row + column]));
  }
}

template <class Use>
bool with_addable(program::DType type, const Use& use) {
  return with_float(type, use) || with_integer(type, use);
}

}  // namespace

cudaError_t start(const AddCall& call, cudaStream_t stream) {
  const std::uint64_t count = call.rows * call.columns;
  if (count == 0) return cudaSuccess;
  return outcome(with_addable(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    start_kernel(add<T>, blocks_for(count), block_threads, stream, static_cast<const T*>(call.a),
                 static_cast<const T*>(call.b), static_cast<T*>(call.dst), call.rows, call.columns,
                 call.a_row, call.b_row, call.dst_row,
                 program::constant_as<Compute<T>>(call.scale));
    return true;
  }));
}

bool has_kernel(const AddCall& call) {
  return with_addable(call.type, [](auto) { return true; });
}

}  // namespace isoscale::executor::cuda
