// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

/// Contains the launch syntax of the GPU compiler and the size of a warp. tests/cuda/kernel_shim
/// has another version of this file, with which the kernels run without a GPU.
namespace isoscale::executor::cuda {

inline constexpr unsigned warp_threads = 32;
using Lanes = unsigned;  ///< one bit per thread of a warp
inline constexpr Lanes all_lanes = ~Lanes{0};

/// Starts a kernel without dynamic shared memory; if that fails, cudaGetLastError returns the
/// error.
template <class... Parameters, class... Arguments>
void start_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t stream,
                  const Arguments&... arguments) {
  kernel<<<grid, block, 0, stream>>>(arguments...);
}

}  // namespace isoscale::executor::cuda
