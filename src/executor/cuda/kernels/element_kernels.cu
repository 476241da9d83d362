// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/elements.cuh"
#include "executor/cuda/kernels/kernels.hpp"
#include "executor/cuda/kernels/vectors.cuh"
#include "program/fill_and_checksum.hpp"

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

}  // namespace

cudaError_t start(const StridedCopy& pieces, cudaStream_t stream) {
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

cudaError_t start(const Arguments<program::Fill>& call, cudaStream_t stream) {
  const program::Fill& op = call.op;
  Shape shape{};
  for (int d = 0; d < 3; ++d) {
    shape.extents[d] = op.shard.extents[d];
    shape.local[d] = op.shard.local[d];
    shape.global[d] = op.shard.global[d];
  }
  shape.first = op.shard.base;
  const std::uint64_t count = shape.extents[0] * shape.extents[1] * shape.extents[2];
  if (count == 0) return cudaSuccess;
  const program::FillGrid grid{program::fill_origin(op.key), op.range, op.one_in};
  const double scale = program::power_of_two(op.exponent);
  const OperandAt dst = call[&program::Fill::dst];
  return outcome(with_any(dst.type, [&](auto type) {
    using T = typename decltype(type)::type;
    const auto with = [&](auto value_of) {
      start_kernel(fill<T, decltype(value_of)>, blocks_for(count), block_threads, stream,
                   reinterpret_cast<T*>(dst.data), shape, value_of);
      return true;
    };
    if (op.source == program::FillSource::random) return with(Integers<T>{grid, scale});
    if constexpr (std::is_integral_v<T>) {
      return op.source == program::FillSource::constant &&
             with(Same<T>{program::constant_as<T>(op.value)});
    } else if (op.source == program::FillSource::normal) {
      return with(Normal<T>{grid, scale});
    } else {
      return with(Same<T>{T(op.value)});  // rounded once, also to the narrow types
    }
  }));
}

cudaError_t start(const Arguments<program::Add>& call, cudaStream_t stream) {
  using Op = program::Add;
  const Extents extents{call.op.rows, call.op.columns};
  if (extents.rows * extents.columns == 0) return cudaSuccess;
  const auto launch = [&](auto type) {
    using T = typename decltype(type)::type;
    start_elements(add<T>, extents, stream, in<T>(call[&Op::a]), in<T>(call[&Op::b]),
                   out<T>(call[&Op::dst]), program::constant_as<Compute<T>>(call.op.scale));
    return true;
  };
  return outcome(with_float(call.type, launch) || with_integer(call.type, launch));
}

}  // namespace isoscale::executor::cuda
