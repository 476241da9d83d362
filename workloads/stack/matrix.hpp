// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "program/op.hpp"

namespace isoscale::workloads::stack {

/// rows x columns from `offset` on, `row_stride` apart, `batch` times `batch_stride` apart; the
/// slice spans exactly what is touched.
struct Layout {
  std::uint64_t rows = 0, columns = 0, row_stride = 0;
  std::uint64_t offset = 0, batch = 1, batch_stride = 0;
  std::uint64_t tp_step = 0;  ///< elements further per tp coordinate
};

[[nodiscard]] inline program::Matrix matrix(const program::Slice& in, const Layout& layout) {
  const std::uint64_t extent = (layout.batch - 1) * layout.batch_stride +
                               (layout.rows - 1) * layout.row_stride + layout.columns;
  return {.slice = {.buffer = in.buffer,
                    .axis = mesh::Axis::tp,
                    .offset = in.offset + layout.offset,
                    .count = extent,
                    .step = layout.tp_step},
          .row_stride = layout.row_stride,
          .batch_stride = layout.batch_stride};
}

/// All of a contiguous rows x columns slice.
[[nodiscard]] inline program::Matrix dense(const program::Slice& in, std::uint64_t rows,
                                           std::uint64_t columns) {
  return matrix(in, {.rows = rows, .columns = columns, .row_stride = columns});
}

/// Rows first ... first + rows - 1 of a matrix of `columns` columns.
[[nodiscard]] inline program::Matrix rows_of(const program::Matrix& whole, std::uint64_t first,
                                             std::uint64_t rows, std::uint64_t columns) {
  program::Matrix part = whole;
  part.slice.offset += first * whole.row_stride;
  part.slice.count = (rows - 1) * whole.row_stride + columns;
  return part;
}

}  // namespace isoscale::workloads::stack
