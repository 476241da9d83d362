// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

/// Words of pinned host memory that streams write and wait for: calls of the driver, which the
/// runtime does not have. They return the driver's code, 0 for success, and not supported (801)
/// where this driver does not know the call.
namespace isoscale::executor::cuda {

/// When all before it on the stream is done, `to` holds `value`. Says nothing about other memory.
[[nodiscard]] int write_in_stream(cudaStream_t stream, const std::uint32_t* to,
                                  std::uint32_t value);
/// Makes the stream wait until `at` holds `value` or has passed it, modulo 2^32.
[[nodiscard]] int wait_in_stream(cudaStream_t stream, const std::uint32_t* at, std::uint32_t value);

}  // namespace isoscale::executor::cuda
