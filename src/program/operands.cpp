// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/operands.hpp"

#include <fmt/format.h>

#include <algorithm>

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

/// Returns what is wrong with the extents of an operand that the op uses.
template <class Op, class Member>
Mistake misfit(const Operand<Op, Member>& operand, const Op& op) {
  if (operand.extents == nullptr) return std::nullopt;
  const Extents extents = operand.extents(op);
  const std::uint64_t has = operand.slice(op).count;
  if constexpr (std::is_same_v<Member, Matrix>) {
    const Matrix& matrix = op.*operand.member;
    const std::uint64_t needs = extent(matrix, extents);
    if (needs <= has) return std::nullopt;
    return fmt::format(
        "{} x {} x {} matrix with strides {}, {} needs {} elements, its slice has {}",
        extents.batch, extents.rows, extents.columns, matrix.batch_stride, matrix.row_stride, needs,
        has);
  }
  const std::uint64_t expected = extents.batch * extents.rows * extents.columns;
  if (has == expected) return std::nullopt;
  return fmt::format("wrong size of {}: {} elements, not {}", operand.name, has, expected);
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
  std::visit(
      [&]<class Op>(const Op& op) {
        for_each_operand(op, [&](const auto& operand, std::size_t /*number*/) {
          if constexpr (std::is_same_v<decltype(operand.member), Matrix Op::*>) {
            if (operand.extents == nullptr) return;
            const Matrix& matrix = op.*operand.member;
            const std::uint64_t elements = matrix_elements(matrix, operand.extents(op));
            const std::uint64_t size = element_size(program.buffers[matrix.slice.buffer].dtype);
            bytes = bytes - matrix.slice.count * size + elements * size;
          }
        });
      },
      payload);
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
      [&]<class Op>(const Op* op) {
        for_each_in_table<Op>([&](const auto& operand, std::size_t /*number*/) {
          if (found) return;
          if (operand.is_missing(*op)) {
            found = fmt::format("{} op: no buffer for {}", name(kind_of(*op)), operand.name);
          } else if (operand.is_used(*op)) {
            found = misfit(operand, *op);
          }
        });
      },
      pointer);
  return found;
}

}  // namespace isoscale::program
