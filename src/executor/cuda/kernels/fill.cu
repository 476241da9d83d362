// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/elements.cuh"
#include "executor/cuda/kernels/kernels.hpp"

namespace isoscale::executor::cuda {
namespace {

/// What the kernel needs of a call, by value.
struct Shape {
  std::uint64_t extents[3], local[3], global[3];
  std::uint64_t first;
  program::FillGrid grid;
};

template <class T>
__global__ void fill_random(T* dst, Shape shape, double scale) {
  const std::uint64_t plane = shape.extents[1] * shape.extents[2];
  const std::uint64_t count = shape.extents[0] * plane;
  for (std::uint64_t e = first_element(); e < count; e += element_step()) {
    const std::uint64_t i = e / plane, j = e % plane / shape.extents[2], k = e % shape.extents[2];
    const std::uint64_t index =
        shape.first + i * shape.global[0] + j * shape.global[1] + k * shape.global[2];
    const int whole = program::fill_integer(shape.grid, index);
    dst[i * shape.local[0] + j * shape.local[1] + k * shape.local[2]] =
        rounded<T>(program::fill_value<Compute<T>>(whole, scale));
  }
}

template <class T>
__global__ void fill_same(T* dst, Shape shape, T value) {
  const std::uint64_t plane = shape.extents[1] * shape.extents[2];
  const std::uint64_t count = shape.extents[0] * plane;
  for (std::uint64_t e = first_element(); e < count; e += element_step()) {
    const std::uint64_t i = e / plane, j = e % plane / shape.extents[2], k = e % shape.extents[2];
    dst[i * shape.local[0] + j * shape.local[1] + k * shape.local[2]] = value;
  }
}

}  // namespace

cudaError_t start(const FillCall& call, cudaStream_t stream) {
  Shape shape{};
  for (int d = 0; d < 3; ++d) {
    shape.extents[d] = call.extents[d];
    shape.local[d] = call.local[d];
    shape.global[d] = call.global[d];
  }
  shape.first = call.first;
  shape.grid = call.grid;
  const std::uint64_t count = call.extents[0] * call.extents[1] * call.extents[2];
  if (count == 0) return cudaSuccess;
  return outcome(with_any(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    auto* const dst = static_cast<T*>(call.dst);
    if (call.source == program::FillSource::constant) {
      T value{};
      if constexpr (std::is_integral_v<T>) {
        value = program::constant_as<T>(call.value);
      } else {
        value = T(call.value);  // rounded once, also to the narrow types
      }
      start_kernel(fill_same<T>, blocks_for(count), block_threads, stream, dst, shape, value);
    } else {
      start_kernel(fill_random<T>, blocks_for(count), block_threads, stream, dst, shape,
                   call.scale);
    }
    return true;
  }));
}

bool has_kernel(const FillCall& call) {
  return with_any(call.type, [](auto) { return true; });
}

}  // namespace isoscale::executor::cuda
