// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

// In place of the file of this name under src: what the CUDA compiler gives to kernels, as C++.
#include <cuda_runtime_api.h>
#include <math.h>  // NOLINT: kernels use functions of all types without a namespace

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <type_traits>

#include "tests/cuda/kernel_shim/fibers.hpp"

#undef __shared__
#define __shared__ static thread_local  // a block is played by one thread of the host
#undef __launch_bounds__
#define __launch_bounds__(...)
#ifndef __global__
#define __global__
#endif
#ifndef __host__
#define __host__
#endif
#ifndef __device__
#define __device__
#endif

namespace isoscale::executor::cuda {

inline constexpr unsigned warp_threads = ISOSCALE_WARP_THREADS;
using Lanes = std::conditional_t<warp_threads == 64, unsigned long long, unsigned>;
inline constexpr Lanes all_lanes = ~Lanes{0};

template <class... Parameters, class... Arguments>
void start_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
                  const Arguments&... arguments) {
  kernel_shim::submit(stream, {grid, block, [=] { kernel(arguments...); }});
}

}  // namespace isoscale::executor::cuda

inline void __syncthreads(const std::source_location& at = std::source_location::current()) {
  isoscale::kernel_shim::wait_at_barrier(at);
}

template <class Value>
Value __shfl_xor_sync(isoscale::executor::cuda::Lanes lanes, Value value, unsigned distance,
                      const std::source_location& at = std::source_location::current()) {
  static_assert(sizeof(Value) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  const std::uint64_t* const of_warp = isoscale::kernel_shim::exchange(lanes, bits, at);
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
  std::memcpy(&value, &of_warp[thread % isoscale::executor::cuda::warp_threads ^ distance],
              sizeof value);
  return value;
}

inline isoscale::executor::cuda::Lanes __ballot_sync(
    isoscale::executor::cuda::Lanes lanes, bool flag,
    const std::source_location& at = std::source_location::current()) {
  const std::uint64_t* const of_warp = isoscale::kernel_shim::exchange(lanes, flag ? 1 : 0, at);
  isoscale::executor::cuda::Lanes result = 0;
  for (unsigned i = 0; i < isoscale::executor::cuda::warp_threads; ++i) {
    result |= static_cast<isoscale::executor::cuda::Lanes>(of_warp[i]) << i;
  }
  return result & lanes;
}

template <class Word>
void __stwb(Word* to, const Word& word) {
  *to = word;
}

using std::max;
inline float __expf(float x) { return expf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline int __popcll(unsigned long long bits) { return std::popcount(bits); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline long long __double_as_longlong(double value) { return std::bit_cast<long long>(value); }

template <class Value>
Value atomicAdd(Value* at, std::type_identity_t<Value> value) {
  return std::atomic_ref<Value>{*at}.fetch_add(value);
}
template <class Value>
Value atomicMax(Value* at, std::type_identity_t<Value> value) {
  const Value before = *at;  // no kernel that plays beside others calls it
  *at = std::max(before, value);
  return before;
}
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_system() { __threadfence(); }
