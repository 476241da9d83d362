// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/element_kernels.hpp"

#include "executor/cuda/kernels/elements.cuh"
#include "executor/cuda/kernels/vectors.cuh"

namespace isoscale::executor::cuda {
namespace {

template <class Unit>
__global__ void copy(Extents extents, In<Unit> src, Out<Unit> dst) {
  for_each_element(
      extents, [](const Unit& from, Unit& to) { to = from; }, src, dst);
}

template <class Unit>
void start_in(const StridedCopy& pieces, cudaStream_t stream) {
  constexpr std::size_t size = sizeof(Unit);
  start_elements(copy<Unit>, {pieces.rows, pieces.row_bytes / size, pieces.batch}, stream,
                 In<Unit>{reinterpret_cast<const Unit*>(pieces.src), pieces.src_row / size,
                          pieces.src_batch / size},
                 Out<Unit>{reinterpret_cast<Unit*>(pieces.dst), pieces.dst_row / size,
                           pieces.dst_batch / size});
}

/// The extents and strides of a shard, which the kernel takes by value.
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

cudaError_t start(const CopyCall& call, cudaStream_t stream) {
  const StridedCopy& pieces = call.pieces;
  if (pieces.row_bytes * pieces.rows * pieces.batch == 0) return cudaSuccess;
  // The kernel copies in the largest unit that divides all addresses, lengths and strides.
  const std::uint64_t bits = reinterpret_cast<std::uintptr_t>(pieces.src) |
                             reinterpret_cast<std::uintptr_t>(pieces.dst) | pieces.row_bytes |
                             pieces.src_row | pieces.dst_row | pieces.src_batch | pieces.dst_batch;
  if (bits % sizeof(std::uint64_t) == 0) {
    start_in<std::uint64_t>(pieces, stream);
  } else if (bits % sizeof(std::uint32_t) == 0) {
    start_in<std::uint32_t>(pieces, stream);
  } else if (bits % sizeof(std::uint16_t) == 0) {
    start_in<std::uint16_t>(pieces, stream);
  } else {
    start_in<std::uint8_t>(pieces, stream);
  }
  return outcome(true);
}

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
