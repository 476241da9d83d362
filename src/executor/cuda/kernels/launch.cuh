// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

/// All that kernels take from the compiler that makes them for a GPU, so that they are plain C++
/// otherwise: tests/cuda/kernel_shim has its own of this file and runs them without one.
namespace isoscale::executor::cuda {

inline constexpr unsigned warp_threads = 32;
using Lanes = unsigned;  ///< a bit a thread of a warp
inline constexpr Lanes all_lanes = ~Lanes{0};

/// Starts a kernel without dynamic shared memory; cudaGetLastError tells a failure.
template <class... Parameters, class... Arguments>
void start_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
                  const Arguments&... arguments) {
  kernel<<<grid, block, 0, stream>>>(arguments...);
}

}  // namespace isoscale::executor::cuda
