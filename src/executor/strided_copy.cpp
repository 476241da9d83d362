// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/strided_copy.hpp"

#include "base/error.hpp"

namespace isoscale::executor {

StridedCopy merged(StridedCopy copy) {
  // Rows that follow each other on both sides are one row; so are matrices that do.
  if (copy.rows == 1 || (copy.src_row == copy.row_bytes && copy.dst_row == copy.row_bytes)) {
    copy.row_bytes *= copy.rows;
    copy.rows = copy.batch;
    copy.src_row = copy.src_batch;
    copy.dst_row = copy.dst_batch;
    copy.batch = 1;
  }
  if (copy.batch == 1 && copy.src_row == copy.row_bytes && copy.dst_row == copy.row_bytes) {
    copy.row_bytes *= copy.rows;
    copy.rows = 1;
  }
  return copy;
}

StridedCopy strided_copy(const Resolver& resolver, const program::Copy& op) {
  if (resolver.dtype(op.src.slice) != resolver.dtype(op.dst.slice)) {
    throw base::Error("source and destination of a copy differ in type: use a cast");
  }
  const std::size_t size = resolver.element_size(op.dst.slice);
  return merged({.src = resolver.address(op.src, op.rows, op.columns, op.batch),
                 .dst = resolver.address(op.dst, op.rows, op.columns, op.batch),
                 .row_bytes = op.columns * size,
                 .rows = op.rows,
                 .batch = op.batch,
                 .src_row = op.src.row_stride * size,
                 .src_batch = op.src.batch_stride * size,
                 .dst_row = op.dst.row_stride * size,
                 .dst_batch = op.dst.batch_stride * size});
}

}  // namespace isoscale::executor
