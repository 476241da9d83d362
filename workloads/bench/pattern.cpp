// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/bench/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "program/fill_and_checksum.hpp"
#include "program/low_precision.hpp"

namespace isoscale::workloads {
namespace {

using program::DType;
using program::Reduction;

constexpr std::uint64_t pattern_key = 0x1509ca1e;

/// The integer that a rank holds at an index of its pattern.
class Pattern {
 public:
  Pattern(DType type, int ranks) {
    const PatternGrid grid = pattern_grid(type, ranks);
    grid_ = {
        .origin = program::fill_origin(pattern_key), .range = grid.range, .one_in = grid.one_in};
  }

  [[nodiscard]] std::int64_t at(int rank, std::uint64_t index) const {
    const std::uint64_t global = static_cast<std::uint64_t>(rank) * pattern_period + index;
    return program::fill_integer(grid_, global);
  }

 private:
  program::FillGrid grid_;
};

/// What `value` becomes when it is stored as `type`, as an integer.
std::int64_t stored(std::int64_t value, DType type) {
  if (type == DType::u8) return static_cast<std::uint8_t>(value);
  if (type == DType::i8) return static_cast<std::int8_t>(value);
  return value;
}

template <class Element>
void put(std::byte* at, Element element) {
  std::memcpy(at, &element, sizeof element);
}

std::int64_t combine(std::int64_t a, std::int64_t b, Reduction reduction) {
  switch (reduction) {
    case Reduction::min:
      return std::min(a, b);
    case Reduction::max:
      return std::max(a, b);
    default:
      return a + b;
  }
}

}  // namespace

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
  // Two thirds of what is drawn from -1, 0, 1 counts. The number of ranks that contribute to an
  // element is near to Poisson's; its mean keeps the tail beyond the limit below 1e-13 (8 for
  // e5m2, the smallest: mean 1/8; 16: 1/4; 256: 32).
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
    fill.shard.steps[static_cast<std::size_t>(axis)] =
        static_cast<std::uint64_t>(mesh::stride(mesh, axis)) * pattern_period;
  }
  return fill;
}

std::vector<std::byte> pattern_table(DType type, int ranks, std::span<const int> sources,
                                     Reduction reduction) {
  const Pattern pattern{type, ranks};
  const auto limit = exact_integers(type);
  const std::uint64_t size = program::element_size(type);
  std::vector<std::byte> table(pattern_period * size);
  for (std::uint64_t i = 0; i < pattern_period; ++i) {
    std::int64_t value = stored(pattern.at(sources.front(), i), type);
    double magnitude = static_cast<double>(std::abs(value));
    for (const int source : sources.subspan(1)) {
      const std::int64_t next = stored(pattern.at(source, i), type);
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

}  // namespace isoscale::workloads
