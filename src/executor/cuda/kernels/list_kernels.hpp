// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "program/op.hpp"

/// Select, Spread and Rows in f64, f32, f16 and bf16. Pointers and strides are as in
/// element_kernels.hpp.
namespace isoscale::executor::cuda {

/// The largest number of elements in a block of a Select or Spread: a thread block keeps them all
/// in shared memory.
inline constexpr std::uint32_t most_per_list_block = 4096;

/// A call for program::Select.
struct SelectCall {
  program::DType type = program::DType::f32;
  std::uint64_t count = 0;
  std::uint32_t block = 0, keep = 0;
  void *src = nullptr, *values = nullptr;
  std::int32_t* places = nullptr;
};
[[nodiscard]] cudaError_t start(const SelectCall& call, cudaStream_t stream);

/// A call for program::Spread. Sums are rounded once, after the last part.
struct SpreadCall {
  program::DType type = program::DType::f32;
  std::uint64_t count = 0;
  std::uint32_t block = 0, keep = 0, parts = 1;
  const void* values = nullptr;
  const std::int32_t* places = nullptr;
  void* dst = nullptr;
};
[[nodiscard]] cudaError_t start(const SpreadCall& call, cudaStream_t stream);

/// A call for program::Rows. Sums are scaled and rounded once.
struct RowsCall {
  program::DType type = program::DType::f32;
  std::uint64_t rows = 0, columns = 0;
  std::uint32_t each = 1;
  double scale = 1;
  const void* src = nullptr;
  void* dst = nullptr;
  std::uint64_t src_row = 0, dst_row = 0;
  const std::uint32_t* from = nullptr;  ///< rows x each, in device memory
};
[[nodiscard]] cudaError_t start(const RowsCall& call, cudaStream_t stream);

/// True if there is a kernel for the types and blocks of a call.
[[nodiscard]] bool has_kernel(const SelectCall& call);
[[nodiscard]] bool has_kernel(const SpreadCall& call);
[[nodiscard]] bool has_kernel(const RowsCall& call);

}  // namespace isoscale::executor::cuda
