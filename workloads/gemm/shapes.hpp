// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "program/op.hpp"
#include "workloads/workload.hpp"

/// Which matrix multiplications the gemm benchmark measures.
namespace isoscale::workloads::gemm {

[[nodiscard]] std::span<const OptionSpec> option_table();

/// op(A) m x k, op(B) k x n, D m x n, all dense, `batch` times.
struct Shape {
  std::uint32_t m = 0, n = 0, k = 0, batch = 1;
  program::Transpose transpose_a = program::Transpose::no;
  program::Transpose transpose_b = program::Transpose::yes;  ///< both operands contiguous along k
  program::DType a = program::DType::f32, b = program::DType::f32, d = program::DType::f32;
  program::ComputeMode mode = program::ComputeMode::native;
  program::Accumulation accumulation = program::Accumulation::split;  ///< of fp8
  std::string origin{};  ///< "list", "powers", "model", "search"

  [[nodiscard]] std::uint64_t a_count() const { return std::uint64_t{m} * k * batch; }
  [[nodiscard]] std::uint64_t b_count() const { return std::uint64_t{k} * n * batch; }
  [[nodiscard]] std::uint64_t d_count() const { return std::uint64_t{m} * n * batch; }
  [[nodiscard]] double flop() const { return 2.0 * m * n * k * batch; }
  [[nodiscard]] std::uint64_t bytes() const;  ///< of A, B and D
};

/// Each shape once, by origin and then by FLOP. Throws base::UsageError: text without meaning, a
/// shape that fp8 cannot have, a model that the mesh does not divide.
[[nodiscard]] std::vector<Shape> shapes_of(const Request& request);

}  // namespace isoscale::workloads::gemm
