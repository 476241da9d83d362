// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "program/buffer.hpp"

namespace isoscale::executor::cuda {

/// program::Checksum; as kernels.hpp has it otherwise. For all types.
struct ChecksumCall {
  program::DType type = program::DType::f32;
  std::uint64_t rows = 0, columns = 0, batch = 1;
  void* src = nullptr;
  std::uint64_t row_stride = 0, batch_stride = 0;
  void* sum = nullptr;         ///< two 64-bit words
  const void* flip = nullptr;  ///< null, or two as well
};
[[nodiscard]] cudaError_t start(const ChecksumCall& call, cudaStream_t stream);

}  // namespace isoscale::executor::cuda
