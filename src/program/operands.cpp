// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/operands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "program/program.hpp"

namespace isoscale::program {
namespace {

using Mistake = std::optional<std::string>;

std::uint64_t matrix_elements(const Matrix& matrix, const Extents& extents) {
  const bool is_shared = matrix.batch_stride == 0 && extents.batch > 0;
  return extents.rows * extents.columns * (is_shared ? 1 : extents.batch);
}

/// Returns the number of elements that the op reads and writes. A source row counts as often as
/// `from` names it; `from` itself is not counted because it is small compared with the rows.
std::uint64_t moved_elements(const Rows& op) {
  const auto named =
      op.from.size() - static_cast<std::size_t>(std::ranges::count(op.from, Rows::no_row));
  return (named + op.rows) * op.columns;
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

/// Calls visit(matrix, extents) for each matrix that the op uses and whose extents are known.
template <class Op, class Visit>
void for_each_matrix(const Op& op, const Visit& visit) {
  for_each_operand(op, [&](const auto& operand, std::size_t /*number*/) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(op.*operand.member)>, Matrix>) {
      if (operand.extents != nullptr) visit(op.*operand.member, operand.extents(op));
    }
  });
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

Mistake mistake_of(const Norm& op) {
  if (exists(op.addend) != exists(op.sum)) return "a norm has an addend and a sum, or neither";
  return inverse_mistake(op.inverse, op.rows);
}

Mistake mistake_of(const Activation& op) { return up_mistake(op.kind, op.up); }

Mistake mistake_of(const ActivationGradient& op) {
  if (exists(op.up) == exists(op.dup)) return up_mistake(op.kind, op.up);
  return "an activation's gradient has a second operand and its gradient, or neither";
}

Mistake mistake_of(const Cast& op) {
  if (!exists(op.dst) && !exists(op.transposed)) return "a cast without destination";
  const bool measures = op.scaling == CastScale::amax;
  if (measures != (op.descale != no_buffer)) {
    return "a cast has a buffer for its scale when it measures its source, and else none";
  }
  if (measures && !(op.target > 0)) return "a cast that measures its source has no target";
  return std::nullopt;
}

/// Checks the sizes of lists in the format that Select writes. There are `parts` lists, each over
/// `elements` elements, with `keep` values and `keep` places for each block of `block` elements.
/// Returns the reason why the sizes are wrong; absent if they fit.
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
  if (op.rows > rows_in(op.dst, op.columns)) {
    return fmt::format("{} rows of {} elements do not fit into a slice of {}", op.rows, op.columns,
                       op.dst.slice.count);
  }
  const std::uint64_t sources = rows_in(op.src, op.columns);
  for (const std::uint32_t row : op.from) {
    if (row != Rows::no_row && row >= sources) {
      return fmt::format("row {} of a matrix that has {}", row, sources);
    }
  }
  return std::nullopt;
}

template <class Op>
Mistake mistake_of(const Op& op) {
  if constexpr (requires { op.inverse; }) return inverse_mistake(op.inverse, op.rows);
  return std::nullopt;
}

void add_whole(const Slice& slice, std::vector<Output>& outputs) {
  if (slice.buffer == no_buffer || slice.count == 0) return;
  outputs.push_back({.matrix = {.slice = slice, .row_stride = slice.count},
                     .extents = {.rows = 1, .columns = slice.count}});
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
  const auto leave_out_gaps = [&](const Matrix& matrix, const Extents& extents) {
    const std::uint64_t size = element_size(program.buffers[matrix.slice.buffer].dtype);
    bytes -= matrix.slice.count * size;
    bytes += matrix_elements(matrix, extents) * size;
  };
  std::visit([&](const auto& op) { for_each_matrix(op, leave_out_gaps); }, payload);
  return bytes;
}

std::vector<Output> outputs_of(const Payload& payload) {
  std::vector<Output> outputs;
  if (has_gaps(payload)) return outputs;
  std::visit(
      [&]<class Op>(const Op& op) {
        if constexpr (std::is_same_v<Op, Exchange>) {
          for (const Transfer& transfer : op.transfers) {
            if (transfer.direction == Direction::receive) add_whole(transfer.slice, outputs);
          }
        }
        for_each_operand(op, [&](const auto& operand, std::size_t /*number*/) {
          if (operand.mode == Mode::read || operand.slice(op).count == 0) return;
          if constexpr (std::is_same_v<decltype(operand.member), Matrix Op::*>) {
            outputs.push_back({.matrix = op.*operand.member, .extents = operand.extents(op)});
          } else {
            add_whole(operand.slice(op), outputs);
          }
        });
      },
      payload);
  return outputs;
}

std::optional<std::string> mistake(OpPointer pointer) {
  Mistake found;
  std::visit(
      [&](const auto* op) {
        for_each_matrix(*op, [&](const Matrix& matrix, const Extents& extents) {
          if (found || extent(matrix, extents) <= matrix.slice.count) return;
          found = fmt::format(
              "{} x {} x {} matrix with strides {}, {} needs {} elements, its slice has {}",
              extents.batch, extents.rows, extents.columns, matrix.batch_stride, matrix.row_stride,
              extent(matrix, extents), matrix.slice.count);
        });
        if (!found) found = mistake_of(*op);
      },
      pointer);
  return found;
}

}  // namespace isoscale::program
