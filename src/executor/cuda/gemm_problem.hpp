// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "executor/resolver.hpp"
#include "program/op.hpp"

namespace isoscale::executor::cuda {

/// One operand of a GEMM as cuBLASLt sees it: column-major, so that a row-major matrix is its own
/// transpose. Strides in elements.
struct Operand {
  program::DType type = program::DType::f32;
  std::uint64_t rows = 0, columns = 0;  ///< of what is stored, column-major
  std::uint64_t leading = 0;            ///< from column to column
  std::uint64_t batch_stride = 0;
  std::byte* data = nullptr;

  /// The largest power of two up to 256 that the address is a multiple of.
  [[nodiscard]] std::uint32_t alignment() const;
  /// Elements from the first to one past the last of `batch` matrices.
  [[nodiscard]] std::uint64_t extent(std::uint64_t batch) const;
};

/// Whether D = alpha * A * B + beta * C reads C, and whether C is D.
enum class Addend : std::uint8_t { none, in_place, distinct };

/// A program's row-major D = op(A) * op(B) is column-major D^T = op(B)^T * op(A)^T: `first` is the
/// program's B, `second` its A, m and n change places.
struct GemmProblem {
  std::uint64_t m = 0, n = 0, k = 0, batch = 1;  ///< column-major: D is m x n
  cublasOperation_t transpose_first = CUBLAS_OP_N, transpose_second = CUBLAS_OP_N;
  program::ComputeMode mode = program::ComputeMode::native;
  program::Accumulation accumulation = program::Accumulation::split;  ///< fp8 only
  Addend addend = Addend::none;
  Operand first{}, second{}, c{}, d{};
  double alpha = 1, beta = 0;
  float *descale_first = nullptr, *descale_second = nullptr;  ///< on the device; fp8 only

  [[nodiscard]] bool is_fp8() const;
  /// All that an algorithm depends on, as text: equal text, same problem. `library` names GPU and
  /// cuBLASLt.
  [[nodiscard]] std::string key(const std::string& library) const;
};

/// Throws base::Error when cuBLASLt has no such GEMM, or an operand is not in GPU memory.
[[nodiscard]] GemmProblem gemm_problem(const Resolver& resolver, const program::Gemm& op);

[[nodiscard]] cudaDataType_t cuda_type(program::DType type);
[[nodiscard]] cublasComputeType_t compute_type(const GemmProblem& problem);
/// The type of alpha and beta.
[[nodiscard]] cudaDataType_t scale_type(const GemmProblem& problem);

}  // namespace isoscale::executor::cuda
