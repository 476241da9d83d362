// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/op_bytes.hpp"

#include <algorithm>

#include "program/access.hpp"
#include "program/matrices.hpp"

namespace isoscale::program {
namespace {

std::uint64_t matrix_elements(const Matrix& matrix, const Extents& extents) {
  const bool is_shared = matrix.batch_stride == 0 && extents.batch > 0;
  return extents.rows * extents.columns * (is_shared ? 1 : extents.batch);
}

/// Rows that are named, each read as often as it is, and rows that are written; the table of names
/// is small beside them.
std::uint64_t moved_elements(const Rows& op) {
  const auto named =
      op.from.size() - static_cast<std::size_t>(std::ranges::count(op.from, Rows::no_row));
  return (named + op.rows) * op.columns;
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
  // Where a slice is that of a matrix, less what lies between its rows.
  for_each_matrix(payload, [&](const Matrix& matrix, const Extents& extents) {
    const std::uint64_t size = element_size(program.buffers[matrix.slice.buffer].dtype);
    bytes -= matrix.slice.count * size;
    bytes += matrix_elements(matrix, extents) * size;
  });
  return bytes;
}

}  // namespace isoscale::program
