// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <type_traits>

#include "executor/cuda/kernels/launch.cuh"
#include "program/dtypes_and_buffers.hpp"

/// Maps the element types of programs to those of kernels, indexes threads, and reduces over warps.
namespace isoscale::executor::cuda {

template <class T>
struct Type {
  using type = T;
};

/// The type in which kernels compute with an element: f64 for f64, the same type for integers, f32
/// for all others.
template <class T>
struct ComputeIn {
  using type = std::conditional_t<std::is_integral_v<T>, T, float>;
};
template <>
struct ComputeIn<double> {
  using type = double;
};
template <class T>
using Compute = typename ComputeIn<T>::type;

template <class T>
__device__ inline Compute<T> load(const T& element) {
  return static_cast<Compute<T>>(element);
}

/// Rounds a value to T, to nearest even; fp8 types saturate.
template <class T, class Value>
__device__ inline T rounded(Value value) {
  return T(value);
}

/// The number of threads of a block, and the largest number of blocks of a grid. A grid of this
/// size occupies any GPU fully; its threads loop if there are more elements.
inline constexpr unsigned block_threads = 256;
inline constexpr unsigned most_blocks = 132 * 16;

inline unsigned blocks_for(std::uint64_t elements) {
  const std::uint64_t blocks = (elements + block_threads - 1) / block_threads;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > most_blocks ? most_blocks : blocks);
}

__device__ inline std::uint64_t first_element() {
  return std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ inline std::uint64_t element_step() { return std::uint64_t{gridDim.x} * blockDim.x; }

/// Returns the index of a thread in its warp.
__device__ inline unsigned lane() {
  return (threadIdx.y * blockDim.x + threadIdx.x) % warp_threads;
}

struct Sum {
  template <class Value>
  __device__ Value operator()(Value a, Value b) const {
    return a + b;
  }
};
struct Most {
  template <class Value>
  __device__ Value operator()(Value a, Value b) const {
    return max(a, b);
  }
};

/// Returns, in every thread of a warp, the reduction by `join` of the values of all its threads.
/// The order is always the same, so that results are reproducible.
template <class Value, class Join>
__device__ Value over_warp(Value mine, const Join& join) {
  for (unsigned distance = warp_threads / 2; distance > 0; distance /= 2) {
    mine = join(mine, __shfl_xor_sync(all_lanes, mine, distance));
  }
  return mine;
}

/// Returns use(Type<T>{}) for a floating type T of 16 bits or more, false for other types.
template <class Use>
bool with_float(program::DType type, const Use& use) {
  switch (type) {
    case program::DType::f64:
      return use(Type<double>{});
    case program::DType::f32:
      return use(Type<float>{});
    case program::DType::f16:
      return use(Type<__half>{});
    case program::DType::bf16:
      return use(Type<__nv_bfloat16>{});
    default:
      return false;
  }
}

/// Returns use(Type<T>{}) for a floating type T, fp8 types included; false for integers.
template <class Use>
bool with_float_or_fp8(program::DType type, const Use& use) {
  switch (type) {
    case program::DType::e4m3:
      return use(Type<__nv_fp8_e4m3>{});
    case program::DType::e5m2:
      return use(Type<__nv_fp8_e5m2>{});
    default:
      return with_float(type, use);
  }
}

template <class Use>
bool with_integer(program::DType type, const Use& use) {
  switch (type) {
    case program::DType::i64:
      return use(Type<std::int64_t>{});
    case program::DType::i32:
      return use(Type<std::int32_t>{});
    case program::DType::i8:
      return use(Type<std::int8_t>{});
    case program::DType::u8:
      return use(Type<std::uint8_t>{});
    default:
      return false;
  }
}

/// Returns use(Type<T>{}) for any element type T.
template <class Use>
bool with_any(program::DType type, const Use& use) {
  return with_float_or_fp8(type, use) || with_integer(type, use);
}

/// Returns the error of the last launch; cudaErrorNotSupported if no kernel has the types of the
/// call.
inline cudaError_t outcome(bool has_kernel) {
  return has_kernel ? cudaGetLastError() : cudaErrorNotSupported;
}

}  // namespace isoscale::executor::cuda
