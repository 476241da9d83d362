// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/buffer.hpp"
#include "program/op.hpp"

/// Operands of a multiplication whose result is known bit for bit: integers, drawn so that their
/// products add up exactly in any order. The rows of op(A) and the columns of op(B) repeat, so that
/// a small table holds all values of D.
namespace isoscale::workloads {

/// Held by memory that has not been written.
inline constexpr double never_an_integer = 0.5;

struct ProductTypes {
  program::DType a{}, b{}, d{};
};

/// Fills A and B of `gemm`, which has alpha 1 and beta 0 and dense matrices, and spoils D.
[[nodiscard]] std::vector<program::Fill> product_fills(const program::Gemm& gemm,
                                                       const ProductTypes& types);

/// What D's matrix number `batch` must hold after the fills and the multiplication, as raw elements
/// of its type: its first rows, as many as differ, each of n elements. Row i is row i modulo their
/// number. Throws base::Error when a sum cannot be exact.
[[nodiscard]] std::vector<std::byte> product_rows(const program::Gemm& gemm,
                                                  const ProductTypes& types, std::uint32_t batch);

}  // namespace isoscale::workloads
