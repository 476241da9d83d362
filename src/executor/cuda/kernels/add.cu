// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/kernels.hpp"
#include "executor/cuda/kernels/vectors.cuh"

namespace isoscale::executor::cuda {
namespace {

template <class T>
__global__ void add(Extents extents, In<T> a, In<T> b, Out<T> dst, Compute<T> scale) {
  for_each_element(
      extents, [=](const T& x, const T& y, T& sum) { sum = rounded<T>(load(x) + scale * load(y)); },
      a, b, dst);
}

template <class Use>
bool with_addable(program::DType type, const Use& use) {
  return with_float(type, use) || with_integer(type, use);
}

}  // namespace

cudaError_t start(const AddCall& call, cudaStream_t stream) {
  if (call.rows * call.columns == 0) return cudaSuccess;
  return outcome(with_addable(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    start_elements(add<T>, {call.rows, call.columns}, stream,
                   In<T>{static_cast<const T*>(call.a), call.a_row},
                   In<T>{static_cast<const T*>(call.b), call.b_row},
                   Out<T>{static_cast<T*>(call.dst), call.dst_row},
                   program::constant_as<Compute<T>>(call.scale));
    return true;
  }));
}

bool has_kernel(const AddCall& call) {
  return with_addable(call.type, [](auto) { return true; });
}

}  // namespace isoscale::executor::cuda
