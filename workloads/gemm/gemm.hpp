// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>

#include "program/builder.hpp"
#include "workloads/bench/bench.hpp"
#include "workloads/gemm/shapes.hpp"
#include "workloads/workload.hpp"

/// Matrix multiplications of many shapes, on all ranks at once.
namespace isoscale::workloads::gemm {

[[nodiscard]] BenchHooks hooks();
[[nodiscard]] Bench build(const Request& request, int batch);

/// Memory for multiplications of any of some shapes, `sets` of each: random operands, results.
class Operands {
 public:
  explicit Operands(program::Builder& builder) : builder_(builder) {}

  /// To be called for every shape before fill().
  void reserve(const Shape& shape, std::uint64_t sets);
  /// Emits the fills with numbers of all digits, which rates are measured on; belongs to setup.
  void fill();
  /// The multiplication of one set, each in memory of its own.
  [[nodiscard]] program::Gemm multiplication(const Shape& shape, std::uint64_t set) const;
  /// Fills its operands with integers, and its result with none; returns the multiplication.
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
