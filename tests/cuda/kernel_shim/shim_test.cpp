// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The shim finds what is wrong with a kernel: kernels that are wrong on purpose.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "executor/cuda/kernels/launch.cuh"
#include "tests/cuda/standin.hpp"

namespace isoscale::kernel_shim {
namespace {

using executor::cuda::all_lanes;
using executor::cuda::Lanes;
using executor::cuda::warp_threads;

constexpr unsigned threads = 256;

/// Plays a kernel of one block and returns what went wrong.
template <class... Parameters, class... Arguments>
std::string failure_of(void (*kernel)(Parameters...), const Arguments&... arguments) {
  standin::machine().reset({});
  executor::cuda::start_kernel(kernel, 1, threads, nullptr, arguments...);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return take_failure();
}

__global__ void barrier_of_some() {
  if (threadIdx.x != 7) __syncthreads();
  __syncthreads();
}
__global__ void barriers_apart() {
  if (threadIdx.x < warp_threads) {  // NOLINT(bugprone-branch-clone): these are two barriers
    __syncthreads();
  } else {
    __syncthreads();
  }
}
__global__ void leavers() {
  if (threadIdx.x % 3 == 0) return;
  __syncthreads();
}

TEST(KernelShim, EveryThreadThatIsLeftReachesABarrier) {
  EXPECT_NE(failure_of(barrier_of_some), "");
  EXPECT_NE(failure_of(barriers_apart), "");
  EXPECT_EQ(failure_of(leavers), "");
}

__global__ void exchange_of_some(unsigned* to) {
  if (threadIdx.x != 7) to[threadIdx.x] = __shfl_xor_sync(all_lanes, threadIdx.x, 1);
}
__global__ void exchange_of_most(unsigned* to) {
  if (threadIdx.x == 7) return;
  to[threadIdx.x] = __shfl_xor_sync(all_lanes, threadIdx.x, 1);
}
__global__ void exchange_of_all(unsigned* to) {
  to[threadIdx.x] = __shfl_xor_sync(all_lanes, threadIdx.x, warp_threads / 2);
}
__global__ void votes(Lanes* to) {
  const Lanes odd = __ballot_sync(all_lanes, threadIdx.x % 2 == 1);
  if (threadIdx.x % warp_threads == 0) to[threadIdx.x / warp_threads] = odd;
}

TEST(KernelShim, EveryThreadThatAnExchangeNamesReachesIt) {
  std::array<unsigned, threads> values{};
  EXPECT_NE(failure_of(exchange_of_some, values.data()), "");
  EXPECT_NE(failure_of(exchange_of_most, values.data()), "");
  EXPECT_EQ(failure_of(exchange_of_all, values.data()), "");
  for (unsigned i = 0; i < threads; ++i) EXPECT_EQ(values[i], i ^ (warp_threads / 2));
  std::array<Lanes, threads / warp_threads> odd{};
  EXPECT_EQ(failure_of(votes, odd.data()), "");
  EXPECT_EQ(std::ranges::count(odd, static_cast<Lanes>(0xaaaaaaaaaaaaaaaaULL)),
            threads / warp_threads);
}

template <bool waits>
__global__ void reverse(const unsigned* from, unsigned* to) {
  __shared__ unsigned values[threads];
  values[threadIdx.x] = from[threadIdx.x];
  if (waits) __syncthreads();
  to[threadIdx.x] = values[threads - 1 - threadIdx.x];
  if (waits) __syncthreads();
}

TEST(KernelShim, ABarrierThatIsMissingShowsInTheNumbers) {
  std::array<unsigned, threads> from{}, to{}, reversed{};
  for (unsigned i = 0; i < threads; ++i) reversed[threads - 1 - i] = from[i] = i + 1;
  EXPECT_EQ(failure_of(reverse<true>, from.data(), to.data()), "");
  EXPECT_EQ(to, reversed);
  EXPECT_EQ(failure_of(reverse<false>, from.data(), to.data()), "");
  EXPECT_NE(to, reversed);
}

/// Reads in the next round what the warps have written in this one.
template <bool waits>
__global__ void two_rounds(unsigned* to) {
  __shared__ unsigned of_warp[threads / warp_threads];
  unsigned sum = 0;
  for (unsigned round = 1; round <= 2; ++round) {
    const unsigned value = __shfl_xor_sync(all_lanes, round, 1);
    if (threadIdx.x % warp_threads == 0) of_warp[threadIdx.x / warp_threads] = value;
    __syncthreads();
    for (const unsigned one : of_warp) sum += one;
    if (waits) __syncthreads();
  }
  to[threadIdx.x] = sum;
}

TEST(KernelShim, AWarpMayBeARoundAhead) {
  constexpr unsigned warps = threads / warp_threads, plays = 20;
  std::array<unsigned, threads> sums{};
  bool differs = false;
  for (unsigned play = 0; play < plays; ++play) {
    EXPECT_EQ(failure_of(two_rounds<true>, sums.data()), "");
    EXPECT_EQ(std::ranges::count(sums, 3 * warps), threads);
    EXPECT_EQ(failure_of(two_rounds<false>, sums.data()), "");
    differs = differs || std::ranges::count(sums, 3 * warps) != threads;
  }
  EXPECT_TRUE(differs);
}

__global__ void nothing() {}

TEST(KernelShim, LaunchesThatCudaRefusesAreFailures) {
  for (const auto& [grid, block, fails] :
       {std::tuple{dim3{1}, dim3{1024}, false}, std::tuple{dim3{1}, dim3{1025}, true},
        std::tuple{dim3{0}, dim3{32}, true}, std::tuple{dim3{1, 65536}, dim3{32}, true}}) {
    executor::cuda::start_kernel(nothing, grid, block, nullptr);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(!take_failure().empty(), fails);
  }
}

}  // namespace
}  // namespace isoscale::kernel_shim
