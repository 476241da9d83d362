// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/list_checks.hpp"

#include <fmt/format.h>

#include <limits>

namespace isoscale::program {
namespace {

using Mistake = std::optional<std::string>;

/// Of lists over `elements` elements, `parts` times.
Mistake lists_mistake(std::uint64_t elements, std::uint32_t block, std::uint32_t keep,
                      std::uint32_t parts, const Slice& values, const Slice& places) {
  if (block == 0 || keep == 0 || keep > block) {
    return fmt::format("{} of each {} elements are kept: 1 to {} can be", keep, block, block);
  }
  constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max();
  if (elements > most) {
    return fmt::format("{} elements are more than places of 32 bits can name: {}", elements, most);
  }
  const std::uint64_t entries = block_count(elements, block) * keep * parts;
  if (values.count == entries && places.count == entries) return std::nullopt;
  return fmt::format(
      "{} lists over {} elements, {} of each {}, have {} entries, not {} values and "
      "{} places",
      parts, elements, keep, block, entries, values.count, places.count);
}

Mistake mistake_of(const Select& op) {
  return lists_mistake(op.src.count, op.block, op.keep, 1, op.values, op.places);
}

Mistake mistake_of(const Spread& op) {
  if (op.parts == 0) return "a spread of no list";
  return lists_mistake(op.dst.count, op.block, op.keep, op.parts, op.values, op.places);
}

/// Rows that fit into the slice of a matrix.
std::uint64_t rows_in(const Matrix& matrix, std::uint32_t columns) {
  if (matrix.slice.count < columns) return 0;
  if (matrix.row_stride == 0) return 1;
  return (matrix.slice.count - columns) / matrix.row_stride + 1;
}

Mistake mistake_of(const Rows& op) {
  if (op.each == 0) return "rows that are sums of none";
  const std::uint64_t indices = std::uint64_t{op.rows} * op.each;
  if (op.from.size() != indices) {
    return fmt::format("{} rows of {} each need {} indices, not {}", op.rows, op.each, indices,
                       op.from.size());
  }
  const std::uint64_t sources = rows_in(op.src, op.columns);
  if (op.rows > rows_in(op.dst, op.columns)) {
    return fmt::format("{} rows of {} elements do not fit into a slice of {}", op.rows, op.columns,
                       op.dst.slice.count);
  }
  for (const std::uint32_t row : op.from) {
    if (row != Rows::no_row && row >= sources) {
      return fmt::format("row {} of a matrix that has {}", row, sources);
    }
  }
  return std::nullopt;
}

template <class Op>
Mistake mistake_of(const Op& /*op*/) {
  return std::nullopt;
}

}  // namespace

std::optional<std::string> list_mistake(const Payload& payload) {
  return std::visit([](const auto& op) { return mistake_of(op); }, payload);
}

}  // namespace isoscale::program
