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

// The data that micro-benchmarks move are small integers that are a function of (rank, index)
// alone, so that every rank knows what every other sent. Their sums are exact in any order and in
// every type, so that results are compared bit for bit.

/// A rank's pattern repeats after so many elements: a prime, so that no chunk of a power of two
/// looks like another.
inline constexpr std::uint64_t pattern_period = 65521;

/// The integers that a pattern is drawn from: -range ... range, one in `one_in` of them, else 0.
struct PatternGrid {
  std::int32_t range = 127;
  std::uint32_t one_in = 1;

  bool operator==(const PatternGrid&) const = default;
};

/// The largest integer up to which `type` holds all of them; absent for integers, whose sums wrap
/// alike in any order.
[[nodiscard]] std::optional<double> exact_integers(program::DType type);

/// A grid whose sums over `ranks` ranks stay within exact_integers(type): for certain, or, where
/// not even -1, 0 and 1 would on all ranks, with a probability below 1e-13 an element that
/// they do not.
[[nodiscard]] PatternGrid pattern_grid(program::DType type, int ranks);

/// Elements that hold `count` of a pattern: whole periods.
[[nodiscard]] std::uint64_t pattern_room(std::uint64_t count);

/// Fills `dst`, of pattern_room() elements, with the pattern of whichever rank of `mesh` plays it.
[[nodiscard]] program::Fill fill_pattern(const program::Slice& dst, program::DType type,
                                         const mesh::Shape& mesh);

/// One period of what `sources` (ranks of a mesh of `ranks`) hold, reduced, as raw elements of
/// `type`. A single source is not reduced. Throws base::Error when a sum cannot be exact.
[[nodiscard]] std::vector<std::byte> pattern_table(program::DType type, int ranks,
                                                   std::span<const int> sources,
                                                   program::Reduction reduction);

/// Operands of a multiplication whose result is known bit for bit: integers, drawn so that their
/// products add up exactly in any order. The rows of op(A) and the columns of op(B) repeat, so that
/// a small table holds all values of D.

/// Held by memory that has not been written.
inline constexpr double never_an_integer = 0.5;

struct ProductTypes {
  program::DType a{}, b{}, d{};
};

/// Fills A and B of `gemm`, which has alpha 1 and beta 0 and dense matrices, and spoils D.
[[nodiscard]] std::vector<program::Fill> product_fills(const program::Gemm& gemm,
                                                       const ProductTypes& types);

/// The values that D's matrix number `batch` must hold after the fills and the multiplication, as
/// raw elements of its type: its first rows, as many as differ, each of n elements. Row i is row i
/// modulo their number. Throws base::Error when a sum cannot be exact.
[[nodiscard]] std::vector<std::byte> product_rows(const program::Gemm& gemm,
                                                  const ProductTypes& types, std::uint32_t batch);

}  // namespace isoscale::workloads
