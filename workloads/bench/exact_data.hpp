// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "mesh/mesh.hpp"
#include "program/buffer.hpp"
#include "program/op.hpp"

namespace isoscale::workloads {

// The data that micro-benchmarks move are small integers, a function of (rank, index) alone, so
// that every rank knows what every other rank sent. Their sums are exact in any order and in every
// type, so that results can be compared bit for bit.

/// A rank's pattern repeats after this many elements: a prime, so that no two chunks of a power of
/// two are equal.
inline constexpr std::uint64_t pattern_period = 65521;

/// The integers that a pattern is drawn from: one element in `one_in` is from -range ... range, the
/// others are 0.
struct PatternGrid {
  std::int32_t range = 127;
  std::uint32_t one_in = 1;

  bool operator==(const PatternGrid&) const = default;
};

/// Returns the largest integer up to which `type` can hold all integers; absent for integer types,
/// whose sums wrap around to the same value in any order.
[[nodiscard]] std::optional<double> exact_integers(program::DType type);

/// Returns a grid whose sums over `ranks` ranks stay within exact_integers(type). This is certain,
/// unless not even -1, 0 and 1 on all ranks would stay within; then the probability that an element
/// exceeds it is below 1e-13.
[[nodiscard]] PatternGrid pattern_grid(program::DType type, int ranks);

/// Returns the number of elements that hold `count` elements of a pattern: whole periods.
[[nodiscard]] std::uint64_t pattern_room(std::uint64_t count);

/// Fills `dst`, of pattern_room() elements, with the pattern of the rank of `mesh` that plays it.
[[nodiscard]] program::Fill fill_pattern(const program::Slice& dst, program::DType type,
                                         const mesh::Shape& mesh);

/// Returns one period of the reduction over `sources` (ranks of a mesh of `ranks`), as raw elements
/// of `type`. A single source is not reduced. Throws base::Error if a sum cannot be exact.
[[nodiscard]] std::vector<std::byte> pattern_table(program::DType type, int ranks,
                                                   std::span<const int> sources,
                                                   program::Reduction reduction);

/// The functions below give a multiplication a result that is known bit for bit: its operands are
/// integers, drawn so that their products add up exactly in any order. The rows of op(A) and the
/// columns of op(B) repeat, so that a small table holds all values of D.

/// The value of memory that has not been written.
inline constexpr double never_an_integer = 0.5;

struct ProductTypes {
  program::DType a{}, b{}, d{};
};

/// Returns the fills of A and B of `gemm`, and one that spoils D. The GEMM has alpha 1, beta 0 and
/// dense matrices.
[[nodiscard]] std::vector<program::Fill> product_fills(const program::Gemm& gemm,
                                                       const ProductTypes& types);

/// Returns the values that D's matrix number `batch` must hold after the fills and the
/// multiplication, as raw elements of its type. These are its first rows, as many as differ, of n
/// elements each; the later rows repeat them. Throws base::Error if a sum cannot be exact.
[[nodiscard]] std::vector<std::byte> product_rows(const program::Gemm& gemm,
                                                  const ProductTypes& types, std::uint32_t batch);

}  // namespace isoscale::workloads
