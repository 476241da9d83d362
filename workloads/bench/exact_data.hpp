// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "mesh/mesh.hpp"
#include "program/dtypes_and_buffers.hpp"
#include "program/op.hpp"

namespace isoscale::workloads {

// Micro-benchmarks move small integers that depend only on rank and index, so that every rank knows
// what every other rank has sent. Their sums are exact in any order and in every type, so that
// results can be compared bit for bit.

/// A rank's pattern repeats after this number of elements. It is a prime, so that two blocks whose
/// size is a power of two are equal only if a multiple of 65521 blocks lies between their starts.
inline constexpr std::uint64_t pattern_period = 65521;

/// The distribution of a pattern's integers: on average one element in `one_in` is drawn from
/// -range ... range, and the others are 0.
struct PatternGrid {
  std::int32_t range = 127;
  std::uint32_t one_in = 1;

  bool operator==(const PatternGrid&) const = default;
};

/// Returns the limit up to which `type` represents all integers exactly. Absent for integer types:
/// their sums wrap around, but to the same value in any order.
[[nodiscard]] std::optional<double> exact_integers(program::DType type);

/// Returns a distribution of integers such that the sum of one element over `ranks` ranks does
/// not exceed exact_integers(type). With very many ranks even values from -1 to 1 could exceed
/// this limit. Then most elements are 0, so that an element's sum exceeds the limit with a
/// probability below 1e-13.
[[nodiscard]] PatternGrid pattern_grid(program::DType type, int ranks);

/// Returns `count` rounded up to whole periods of the pattern, at least one: the number of elements
/// to allocate.
[[nodiscard]] std::uint64_t pattern_room(std::uint64_t count);

/// Returns an op that fills `dst`, which must have whole periods of the pattern, as pattern_room()
/// gives them. Each rank of `mesh` that runs the op writes the pattern of its own rank. Throws
/// base::Error for another number of elements.
[[nodiscard]] program::Fill fill_pattern(const program::Slice& dst, program::DType type,
                                         const mesh::Shape& mesh);

/// Returns one period of the reduction of the patterns of `sources` (ranks of a mesh of `ranks`
/// ranks), as raw elements of `type`. With a single source it is that rank's pattern. Throws
/// base::Error if a sum cannot be exact.
[[nodiscard]] std::vector<std::byte> pattern_table(program::DType type, int ranks,
                                                   std::span<const int> sources,
                                                   program::Reduction reduction);

// The functions below make multiplications whose results are known bit for bit. The operands are
// integers that are drawn so that their products add up exactly in any order. The rows of op(A) and
// the columns of op(B) repeat, so that a small table has all values of D.

/// D is filled with this value before a multiplication. Correct results are integers, so an element
/// that still has this value was not written.
inline constexpr double never_an_integer = 0.5;

struct ProductTypes {
  program::DType a{}, b{}, d{};
};

/// Returns the fills of A and B of `gemm`, and one that fills D with a wrong value. `gemm` must
/// have alpha 1, beta 0 and dense matrices.
[[nodiscard]] std::vector<program::Fill> product_fills(const program::Gemm& gemm,
                                                       const ProductTypes& types);

/// Returns the values that matrix number `batch` of D must have after the fills and the
/// multiplication, as raw elements of its type. Only the first rows of D are returned, at most 31,
/// each with n elements, since later rows repeat them. Throws base::Error if a sum cannot be exact.
[[nodiscard]] std::vector<std::byte> product_rows(const program::Gemm& gemm,
                                                  const ProductTypes& types, std::uint32_t batch);

}  // namespace isoscale::workloads
