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
};

template <class T>
struct Integers {
  program::FillGrid grid;
  double scale;
  __device__ T operator()(std::uint64_t index) const {
    return rounded<T>(program::fill_value<Compute<T>>(program::fill_integer(grid, index), scale));
  }
};

template <class T>
struct Normal {
  program::FillGrid grid;
  double scale;
  __device__ T operator()(std::uint64_t index) const {
    return rounded<T>(program::fill_normal<Compute<T>>(grid, index, scale));
  }
};

template <class T>
struct Same {
  T value;
  __device__ T operator()(std::uint64_t /*index*/) const { return value; }
};

template <class T, class ValueOf>
__global__ void fill(T* dst, Shape shape, ValueOf value_of) {
  const std::uint64_t plane = shape.extents[1] * shape.extents[2];
  const std::uint64_t count = shape.extents[0] * plane;
  for (std::uint64_t e = first_element(); e < count; e += element_step()) {
    const std::uint64_t i = e / plane, j = e % plane / shape.extents[2], k = e % shape.extents[2];
    const std::uint64_t index =
        shape.first + i * shape.global[0] + j * shape.global[1] + k * shape.global[2];
    dst[i * shape.local[0] + j * shape.local[1] + k * shape.local[2]] = value_of(index);
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
  const std::uint64_t count = call.extents[0] * call.extents[1] * call.extents[2];
  if (count == 0) return cudaSuccess;
  return outcome(with_any(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto with = [&](auto value_of) {
      start_kernel(fill<T, decltype(value_of)>, blocks_for(count), block_threads, stream,
                   static_cast<T*>(call.dst), shape, value_of);
      return true;
    };
    if (call.source == program::FillSource::random) {
      return with(Integers<T>{call.grid, call.scale});
    }
    if constexpr (std::is_integral_v<T>) {
      return call.source == program::FillSource::constant &&
             with(Same<T>{program::constant_as<T>(call.value)});
    } else if (call.source == program::FillSource::normal) {
      return with(Normal<T>{call.grid, call.scale});
    } else {
      return with(Same<T>{T(call.value)});  // rounded once, also to the narrow types
    }
  }));
}

bool has_kernel(const FillCall& call) {
  return with_any(call.type, [](auto) { return true; });
}

}  // namespace isoscale::executor::cuda
