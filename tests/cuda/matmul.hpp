// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>

#include "program/buffer.hpp"

/// This is what the stand-in of cuBLASLt knows and computes.
namespace isoscale::standin {

struct Description {
  cublasComputeType_t compute{};
  cudaDataType_t scale_type{};
  cublasOperation_t first = CUBLAS_OP_N, second = CUBLAS_OP_N;
  std::int8_t fast = 0;
  const float *first_scale = nullptr, *second_scale = nullptr;
};
struct Layout {
  cudaDataType_t type{};
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0, batch_stride = 0;
  std::int32_t batch = 1;
};
struct Preference {
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;  // all: also sums in a narrow type
  std::uint64_t workspace = 0;
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};

struct Matmul {
  Description how;
  Layout a, b, c, d;
  double alpha = 1, beta = 0;
  const void *a_data = nullptr, *b_data = nullptr, *c_data = nullptr;
  void *d_data = nullptr, *workspace = nullptr;
  std::size_t workspace_bytes = 0;
  int algorithm = 0;

  [[nodiscard]] std::uint64_t depth() const {
    return how.first == CUBLAS_OP_N ? a.columns : a.rows;
  }
};

/// Returns whether the operands' sizes fit each other.
[[nodiscard]] bool is_consistent(const Matmul& call);
/// Returns whether the library multiplies such types and layouts, with operands so far aligned.
[[nodiscard]] bool is_supported(const Matmul& call, const std::uint32_t* alignment);
/// Equal for equal problems, wherever their operands lie.
[[nodiscard]] std::uint64_t problem_number(const Matmul& call);
/// In f64, rounding D once. Throws Fault.
void run(const Matmul& call);

}  // namespace isoscale::standin
