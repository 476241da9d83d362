// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/operands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace isoscale::program {
namespace {

using Mistake = std::optional<std::string>;

std::uint64_t matrix_elements(const Matrix& matrix, const Extents& extents) {
  const bool is_shared = matrix.batch_stride == 0 && extents.batch > 0;
  return extents.rows * extents.columns * (is_shared ? 1 : extents.batch);
}

/// Returns the number of elements of the rows that are read, each time that `from` names them, and
/// of the rows that are written; `from` itself is small compared with them.
std::uint64_t moved_elements(const Rows& op) {
  const auto named =
      op.from.size() - static_cast<std::size_t>(std::ranges::count(op.from, Rows::no_row));
  return (named + op.rows) * op.columns;
}

bool same(const Slice& a, const Slice& b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.count == b.count && a.step == b.step &&
         a.axis == b.axis;
}

/// Returns the matrix of the op that has this slice; absent if it is in none.
std::optional<Output> as_matrix(const Payload& payload, const Slice& slice) {
  if (const auto* rows = std::get_if<Rows>(&payload)) {
    return Output{.matrix = rows->dst, .extents = {rows->rows, rows->columns}};
  }
  std::optional<Output> found;
  for_each_matrix(payload, [&](const Matrix& matrix, const Extents& extents) {
    if (same(matrix.slice, slice)) found = {.matrix = matrix, .extents = extents};
  });
  return found;
}

bool has_gaps(const Payload& payload) {
  const auto* fill = std::get_if<Fill>(&payload);
  if (fill == nullptr) return false;
  const auto& extents = fill->shard.extents;
  return extents[0] * extents[1] * extents[2] != fill->dst.count;
}

/// Returns one more than the index of the last element that a strided matrix touches.
std::uint64_t extent(const Matrix& matrix, const Extents& extents) {
  const auto& [rows, columns, batch] = extents;
  if (rows == 0 || columns == 0 || batch == 0) return 0;
  return (batch - 1) * matrix.batch_stride + (rows - 1) * matrix.row_stride + columns;
}

Mistake inverse_mistake(const Slice& inverse, std::uint32_t rows) {
  if (inverse.buffer != no_buffer && inverse.count == rows) return std::nullopt;
  return fmt::format("a norm of {} rows has {} inverses", rows,
                     inverse.buffer == no_buffer ? 0 : inverse.count);
}

Mistake up_mistake(ActivationKind kind, const Matrix& up) {
  const bool is_gated = kind == ActivationKind::swiglu;
  if (is_gated == exists(up)) return std::nullopt;
  return is_gated ? "swiglu without its second operand" : "gelu with a second operand";
}

/// Returns the reason if an operand is missing or superfluous.
Mistake operand_mistake(const Payload& payload) {
  if (const auto* norm = std::get_if<Norm>(&payload)) {
    if (exists(norm->addend) != exists(norm->sum)) {
      return "a norm has an addend and a sum, or neither";
    }
    return inverse_mistake(norm->inverse, norm->rows);
  }
  if (const auto* gradient = std::get_if<NormGradient>(&payload)) {
    return inverse_mistake(gradient->inverse, gradient->rows);
  }
  if (const auto* activation = std::get_if<Activation>(&payload)) {
    return up_mistake(activation->kind, activation->up);
  }
  if (const auto* gradient = std::get_if<ActivationGradient>(&payload)) {
    if (exists(gradient->up) != exists(gradient->dup)) {
      return "an activation's gradient has a second operand and its gradient, or neither";
    }
    return up_mistake(gradient->kind, gradient->up);
  }
  return std::nullopt;
}

/// Returns the reason if `parts` lists over `elements` elements are malformed.
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

/// Returns the number of rows for which the slice of a matrix has room.
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

std::uint64_t slice_bytes(const RankProgram& program, const Slice& slice) {
  if (slice.buffer == no_buffer) return 0;
  return slice.count * element_size(program.buffers[slice.buffer].dtype);
}

std::uint64_t local_bytes(const RankProgram& program, const Payload& payload) {
  if (const auto* advise = std::get_if<Advise>(&payload)) {
    const bool moves =
        advise->advice == Advice::prefetch_device || advise->advice == Advice::prefetch_host;
    return moves ? slice_bytes(program, advise->slice) : 0;
  }
  if (const auto* rows = std::get_if<Rows>(&payload)) {
    return moved_elements(*rows) * element_size(program.buffers[rows->dst.slice.buffer].dtype);
  }
  std::uint64_t bytes = 0;
  for_each_slice(payload, [&](const Slice& slice, Mode) { bytes += slice_bytes(program, slice); });
  // Elements between the rows of a matrix do not count.
  for_each_matrix(payload, [&](const Matrix& matrix, const Extents& extents) {
    const std::uint64_t size = element_size(program.buffers[matrix.slice.buffer].dtype);
    bytes -= matrix.slice.count * size;
    bytes += matrix_elements(matrix, extents) * size;
  });
  return bytes;
}

std::vector<Output> outputs_of(const Payload& payload) {
  std::vector<Output> outputs;
  if (has_gaps(payload)) return outputs;
  for_each_slice(payload, [&](const Slice& slice, Mode mode) {
    if (mode == Mode::read) return;
    const Output whole{.matrix = {.slice = slice, .row_stride = slice.count},
                       .extents = {.rows = 1, .columns = slice.count}};
    outputs.push_back(as_matrix(payload, slice).value_or(whole));
  });
  return outputs;
}

std::optional<std::string> shape_mistake(const Payload& payload) {
  std::optional<std::string> mistake;
  for_each_matrix(payload, [&](const Matrix& matrix, const Extents& extents) {
    if (mistake || extent(matrix, extents) <= matrix.slice.count) return;
    mistake = fmt::format(
        "{} x {} x {} matrix with strides {}, {} needs {} elements, "
        "its slice has {}",
        extents.batch, extents.rows, extents.columns, matrix.batch_stride, matrix.row_stride,
        extent(matrix, extents), matrix.slice.count);
  });
  return mistake ? mistake : operand_mistake(payload);
}

std::optional<std::string> list_mistake(const Payload& payload) {
  return std::visit([](const auto& op) { return mistake_of(op); }, payload);
}

}  // namespace isoscale::program
