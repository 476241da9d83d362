// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "program/builder.hpp"
#include "program/op.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads::gemm {

// The gemm benchmark measures matrix multiplications of many shapes, on all ranks at once.

[[nodiscard]] std::span<const OptionSpec> option_table();

/// A multiplication: op(A) m x k, op(B) k x n, D m x n, all dense, `batch` times.
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

/// Returns each shape once, by origin and then by FLOP. Throws base::UsageError for invalid text, a
/// shape that fp8 cannot have, or a model that the mesh does not divide.
[[nodiscard]] std::vector<Shape> shapes_of(const Request& request);

[[nodiscard]] BenchHooks hooks();
[[nodiscard]] Bench build(const Request& request, int batch);

/// Memory for multiplications of several shapes, `sets` of each: random operands and results.
class Operands {
 public:
  explicit Operands(program::Builder& builder) : builder_(builder) {}

  /// Reserves memory for a shape; must be called for every shape before fill().
  void reserve(const Shape& shape, std::uint64_t sets);
  /// Emits the fills for rate measurements, with numbers that use all digits; belongs to setup.
  void fill();
  /// Returns the multiplication of one set; each set has memory of its own.
  [[nodiscard]] program::Gemm multiplication(const Shape& shape, std::uint64_t set) const;
  /// Fills the operands with integers, and the result with a value that is none; returns the
  /// multiplication.
  program::Gemm fill_check(const Shape& shape, std::uint64_t set);

 private:
  struct Pool {
    std::uint64_t room = 0;  ///< elements
    program::BufferId buffer = program::no_buffer;
  };
  program::Builder& builder_;
  std::map<program::DType, Pool> first_, second_, results_;
};

}  // namespace isoscale::workloads::gemm
