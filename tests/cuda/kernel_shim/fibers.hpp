// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <source_location>
#include <string>

/// Runs CUDA kernels that were compiled as C++. The threads of a block are fibers of one thread of
/// the host. Each runs until it has to wait for others, in an order drawn at random, so that a
/// barrier that is missing shows as wrong numbers. A barrier or a warp operation that some of its
/// threads do not reach is a failure.
namespace isoscale::kernel_shim {

/// One launch of a kernel.
struct Grid {
  dim3 blocks, threads;
  std::function<void()> thread;  ///< the kernel with its arguments
};
/// Plays the grid in its turn on the stream of the stand-ins, one block after the other.
void submit(cudaStream_t stream, Grid grid);
/// Plays the blocks of all grids that `starts` submits at the same time.
void play_together(const std::function<void()>& starts);
/// The first failure since the last call, empty without one.
[[nodiscard]] std::string take_failure();

/// The calls of a thread: all of its block reach a barrier, all of `lanes` an exchange, at a place.
void wait_at_barrier(const std::source_location& at);
/// The values of all threads of the warp, until the next exchange.
[[nodiscard]] const std::uint64_t* exchange(std::uint64_t lanes, std::uint64_t value,
                                            const std::source_location& at);
/// Lets others run: a thread that looks again and again for what another one writes must call it.
void pause();

}  // namespace isoscale::kernel_shim

struct KernelIndex {
  unsigned x = 0, y = 0, z = 0;
};
inline constinit thread_local KernelIndex threadIdx{}, blockIdx{};
inline constinit thread_local dim3 blockDim{}, gridDim{};
