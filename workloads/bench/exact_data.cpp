// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/bench/exact_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "program/fill_and_checksum.hpp"
#include "program/low_precision.hpp"

namespace isoscale::workloads {

namespace {

using program::DType;
using program::Reduction;

constexpr std::uint64_t pattern_key = 0x1509ca1e;

/// Returns the parameters of fill_integer(). With them it computes the same integers that a Fill op
/// with this key and distribution writes.
program::FillGrid drawn(std::uint64_t key, const PatternGrid& grid) {
  return {.origin = program::fill_origin(key), .range = grid.range, .one_in = grid.one_in};
}

/// Returns the integer that `value` becomes when it is stored as `type`.
std::int64_t stored(std::int64_t value, DType type) {
  if (type == DType::u8) return static_cast<std::uint8_t>(value);
  if (type == DType::i8) return static_cast<std::int8_t>(value);
  return value;
}

template <class Element>
void put(std::byte* at, Element element) {
  std::memcpy(at, &element, sizeof element);
}

/// Writes `value` to `at` as one element of `type`. The type must be able to hold it exactly.
void store_integer(std::byte* at, std::int64_t value, DType type) {
  if (const auto format = program::narrow_format(type)) {
    const std::uint16_t code = program::encode(*format, static_cast<double>(value));
    if (program::element_size(type) == 1) return put(at, static_cast<std::uint8_t>(code));
    return put(at, code);
  }
  switch (type) {
    case DType::f64:
      return put(at, static_cast<double>(value));
    case DType::f32:
      return put(at, static_cast<float>(value));
    case DType::i64:
      return put(at, value);
    case DType::i32:
      return put(at, static_cast<std::int32_t>(value));
    default:
      return put(at, static_cast<std::uint8_t>(value));
  }
}

std::int64_t combine(std::int64_t a, std::int64_t b, Reduction reduction) {
  if (reduction == Reduction::sum) return a + b;
  return reduction == Reduction::min ? std::min(a, b) : std::max(a, b);
}

/// The rows of op(A) repeat after 31 rows, and the columns of op(B) after 29 columns. Both numbers
/// are primes, so that neighbouring tiles of a kernel, whose sizes are powers of two, differ.
constexpr std::uint32_t rows_that_differ = 31, columns_that_differ = 29;

constexpr std::uint64_t key_of_a = 0xa11ce, key_of_b = 0xb0b;

/// Returns the largest magnitude of a sum up to which a multiplication adds integers exactly.
/// Tensor cores keep only about 14 bits in sums of fp8 products.
double exact_sums(const ProductTypes& types) {
  constexpr double of_fp8 = 8192, of_others = 16777216;
  const auto is_fp8 = [](DType type) { return type == DType::e4m3 || type == DType::e5m2; };
  const double result = exact_integers(types.d).value_or(0);
  if (types.a == DType::f64 && types.d == DType::f64) return result;
  return std::min(result, is_fp8(types.a) || is_fp8(types.b) ? of_fp8 : of_others);
}

/// The distributions of A and of B.
struct ProductGrids {
  PatternGrid a, b;
};

/// Returns the distribution of both operands of a multiplication that is neither in f32 nor in f64.
PatternGrid grid_of_narrow(const ProductTypes& types, std::uint32_t depth) {
  constexpr double widest = 127;
  const double limit = exact_sums(types);
  const double range = std::min({widest, std::floor(std::sqrt(limit / depth)),
                                 exact_integers(types.a).value_or(widest),
                                 exact_integers(types.b).value_or(widest)});
  if (range >= 1) return {.range = static_cast<std::int32_t>(range)};
  // Values are drawn from -1, 0 and 1, so two thirds of the drawn ones are not zero. `one_in` is
  // chosen so that, on average, the number of products that are not zero is an eighth of the limit.
  // A sum then exceeds the limit, which is 256 or more, with a probability below 1e-13.
  const double one_in = 2.0 / 3.0 * std::sqrt(8 * static_cast<double>(depth) / limit);
  return {.range = 1, .one_in = static_cast<std::uint32_t>(std::ceil(one_in))};
}

/// In f32 and f64, the values of A have more bits than the next narrower type: 13 where tf32 has
/// 11, 25 where f32 has 24. So a library that multiplies in that type, as NVIDIA_TF32_OVERRIDE=1
/// makes cuBLAS do, has wrong results. B is -1, 0 or 1, and zero so often that the magnitudes of
/// the products add up to half the limit of exact sums on average, and never to the limit.
ProductGrids grids_of(const program::Gemm& gemm, const ProductTypes& types) {
  const bool is_wide = gemm.mode == program::ComputeMode::native && types.a == types.d &&
                       (types.a == DType::f32 || types.a == DType::f64);
  if (!is_wide) {
    const PatternGrid both = grid_of_narrow(types, gemm.k);
    return {both, both};
  }
  const std::int32_t range = (1 << (types.a == DType::f32 ? 13 : 25)) - 1;
  const double one_in = std::ceil(2.0 / 3.0 * gemm.k * range / exact_sums(types));
  return {.a = {.range = range},
          .b = {.range = 1, .one_in = static_cast<std::uint32_t>(std::max(one_in, 1.0))}};
}

/// One operand: `extent` rows of op(A) or columns of op(B) with `depth` elements each. Their values
/// repeat after `period` rows or columns. In memory the elements of a row or column are adjacent
/// or, with `side_by_side`, `extent` elements apart.
struct Operand {
  program::Slice slice;
  std::uint64_t extent, period, depth, batch;
  bool side_by_side;
  std::uint64_t key;

  [[nodiscard]] std::uint64_t global(std::uint64_t b, std::uint64_t r, std::uint64_t l) const {
    return side_by_side ? (b * depth + l) * period + r : (b * period + r) * depth + l;
  }

  /// Returns an op that fills `count` groups of `width` rows or columns each, beginning at row or
  /// column `begin`.
  [[nodiscard]] program::Fill fill(const PatternGrid& grid, std::uint64_t begin,
                                   std::uint64_t count, std::uint64_t width) const {
    program::Fill fill{.dst = slice, .key = key, .range = grid.range, .one_in = grid.one_in};
    const std::uint64_t unit = side_by_side ? 1 : depth;  // adjacent elements of one row or column
    fill.dst.offset += begin * unit;
    fill.dst.count -= begin * unit;
    fill.shard.extents = {batch * depth / unit, count, width * unit};
    fill.shard.local = {extent * unit, period * unit, 1};
    fill.shard.global = {period * unit, 0, 1};
    return fill;
  }

  void add_fills(const PatternGrid& grid, std::vector<program::Fill>& fills) const {
    const std::uint64_t whole = extent / period, rest = extent % period;
    if (whole > 0) fills.push_back(fill(grid, 0, whole, period));
    if (rest > 0) fills.push_back(fill(grid, whole * period, 1, rest));
  }

  /// Returns the values of matrix number `b` of the batch: `period` rows or columns, one after
  /// another, with `depth` values each.
  [[nodiscard]] std::vector<std::int32_t> values(const PatternGrid& grid, std::uint64_t b) const {
    const program::FillGrid integers = drawn(key, grid);
    std::vector<std::int32_t> values;
    values.reserve(period * depth);
    for (std::uint64_t r = 0; r < period; ++r) {
      for (std::uint64_t l = 0; l < depth; ++l) {
        values.push_back(program::fill_integer(integers, global(b, r, l)));
      }
    }
    return values;
  }
};

Operand operand_a(const program::Gemm& gemm) {
  return {.slice = gemm.a.slice,
          .extent = gemm.m,
          .period = rows_that_differ,
          .depth = gemm.k,
          .batch = gemm.batch,
          .side_by_side = gemm.transpose_a == program::Transpose::yes,
          .key = key_of_a};
}

Operand operand_b(const program::Gemm& gemm) {
  return {.slice = gemm.b.slice,
          .extent = gemm.n,
          .period = columns_that_differ,
          .depth = gemm.k,
          .batch = gemm.batch,
          .side_by_side = gemm.transpose_b == program::Transpose::no,
          .key = key_of_b};
}

}  // namespace

std::optional<double> exact_integers(DType type) {
  if (const auto format = program::narrow_format(type)) return std::ldexp(2, format->mantissa_bits);
  if (type == DType::f64) return std::ldexp(1, 53);
  if (type == DType::f32) return std::ldexp(1, 24);
  return std::nullopt;
}

PatternGrid pattern_grid(DType type, int ranks) {
  constexpr double widest = 127;
  const auto limit = exact_integers(type);
  if (!limit) return {};
  const double share = std::floor(*limit / ranks);
  if (share >= 1) return {.range = static_cast<std::int32_t>(std::min(share, widest))};
  // One in `one_in` elements is drawn from -1, 0 and 1; two thirds of these are not zero. The
  // number of ranks whose element is not zero is nearly Poisson distributed. With the mean chosen
  // here it exceeds the limit with a probability below 1e-13. The mean is 1/8 for limit 8 (e5m2,
  // the smallest), 1/4 for limit 16, and 32 for limit 256.
  constexpr double drawn = 2.0 / 3.0, large = 64;
  const double mean = *limit >= large ? *limit / 8 : *limit / large;
  return {.range = 1, .one_in = static_cast<std::uint32_t>(std::ceil(drawn * ranks / mean))};
}

std::uint64_t pattern_room(std::uint64_t count) {
  return (std::max<std::uint64_t>(count, 1) + pattern_period - 1) / pattern_period * pattern_period;
}

program::Fill fill_pattern(const program::Slice& dst, DType type, const mesh::Shape& mesh) {
  if (dst.count % pattern_period != 0) throw base::Error("a pattern fills whole periods");
  const PatternGrid grid = pattern_grid(type, mesh.size());
  program::Fill fill{.dst = dst,
                     .shard = {.extents = {dst.count / pattern_period, pattern_period, 1},
                               .local = {pattern_period, 1, 0},
                               .global = {0, 1, 0}},
                     .key = pattern_key,
                     .range = grid.range,
                     .one_in = grid.one_in};
  for (const mesh::Axis axis : mesh::all_axes) {
    fill.shard.steps[axis] = static_cast<std::uint64_t>(mesh::stride(mesh, axis)) * pattern_period;
  }
  return fill;
}

std::vector<std::byte> pattern_table(DType type, int ranks, std::span<const int> sources,
                                     Reduction reduction) {
  const program::FillGrid grid = drawn(pattern_key, pattern_grid(type, ranks));
  const auto element = [&](int rank, std::uint64_t i) {
    const std::uint64_t global = static_cast<std::uint64_t>(rank) * pattern_period + i;
    return stored(program::fill_integer(grid, global), type);
  };
  const auto limit = exact_integers(type);
  const std::uint64_t size = program::element_size(type);
  std::vector<std::byte> table(pattern_period * size);
  for (std::uint64_t i = 0; i < pattern_period; ++i) {
    std::int64_t value = element(sources.front(), i);
    double magnitude = static_cast<double>(std::abs(value));
    for (const int source : sources.subspan(1)) {
      const std::int64_t next = element(source, i);
      value = combine(value, next, reduction);
      magnitude += static_cast<double>(std::abs(next));
    }
    if (reduction == Reduction::sum && limit && magnitude > *limit) {
      throw base::Error(fmt::format("{} cannot add {} ranks' data exactly at element {}",
                                    program::name(type), sources.size(), i));
    }
    store_integer(table.data() + i * size, value, type);
  }
  return table;
}

std::vector<program::Fill> product_fills(const program::Gemm& gemm, const ProductTypes& types) {
  const ProductGrids grids = grids_of(gemm, types);
  std::vector<program::Fill> fills;
  operand_a(gemm).add_fills(grids.a, fills);
  operand_b(gemm).add_fills(grids.b, fills);
  fills.push_back(program::constant_fill(gemm.d.slice, never_an_integer));
  return fills;
}

std::vector<std::byte> product_rows(const program::Gemm& gemm, const ProductTypes& types,
                                    std::uint32_t batch) {
  const ProductGrids grids = grids_of(gemm, types);
  const double limit = exact_sums(types);
  const std::vector<std::int32_t> a = operand_a(gemm).values(grids.a, batch);
  const std::vector<std::int32_t> b = operand_b(gemm).values(grids.b, batch);
  const std::uint64_t size = program::element_size(types.d);
  const std::uint64_t rows = std::min(rows_that_differ, gemm.m);
  std::vector<std::byte> result(rows * gemm.n * size);
  for (std::uint64_t i = 0; i < rows; ++i) {
    for (std::uint64_t j = 0; j < std::min(columns_that_differ, gemm.n); ++j) {
      std::int64_t sum = 0, magnitude = 0;
      for (std::uint64_t l = 0; l < gemm.k; ++l) {
        const std::int64_t product = std::int64_t{a[i * gemm.k + l]} * b[j * gemm.k + l];
        sum += product;
        magnitude += std::abs(product);
      }
      if (static_cast<double>(magnitude) > limit) {
        throw base::Error(fmt::format("{} cannot add {} products exactly at row {}, column {}",
                                      program::name(types.d), gemm.k, i, j));
      }
      for (std::uint64_t at = j; at < gemm.n; at += columns_that_differ) {
        store_integer(result.data() + (i * gemm.n + at) * size, sum, types.d);
      }
    }
  }
  return result;
}

}  // namespace isoscale::workloads
