// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "program/builder.hpp"
#include "program/op.hpp"

namespace isoscale::workloads::stack {

/// Converts an extent to the type of op extents. The extents of a Geometry have been checked to
/// fit.
inline std::uint32_t extent(std::uint64_t value) { return static_cast<std::uint32_t>(value); }

/// The layout of matrices in a slice: the first one begins at `offset`, its rows are `row_stride`
/// apart, and the `batch` matrices are `batch_stride` apart.
struct Layout {
  std::uint64_t rows = 0, columns = 0, row_stride = 0;
  std::uint64_t offset = 0, batch = 1, batch_stride = 0;
  std::uint64_t tp_step = 0;  ///< added to the offset for each step along tp
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

/// Returns a contiguous slice as a matrix of `rows` x `columns`.
[[nodiscard]] inline program::Matrix dense(const program::Slice& in, std::uint64_t rows,
                                           std::uint64_t columns) {
  return matrix(in, {.rows = rows, .columns = columns, .row_stride = columns});
}

/// Returns the rows `first` ... first + rows - 1 of a matrix with `columns` columns.
[[nodiscard]] inline program::Matrix rows_of(const program::Matrix& whole, std::uint64_t first,
                                             std::uint64_t rows, std::uint64_t columns) {
  program::Matrix part = whole;
  part.slice.offset += first * whole.row_stride;
  part.slice.count = (rows - 1) * whole.row_stride + columns;
  return part;
}

// The functions below treat slices as consecutive elements.

/// Returns the elements `offset` ... offset + count - 1 of a buffer; an empty slice for no_buffer.
[[nodiscard]] inline program::Slice flat(program::BufferId buffer, std::uint64_t offset,
                                         std::uint64_t count) {
  if (buffer == program::no_buffer) return {};
  return {.buffer = buffer, .offset = offset, .count = count};
}

/// Returns this rank's part of `whole`, which is cut into `parts` equal parts, one for each
/// coordinate along dp.
[[nodiscard]] inline program::Slice own_part(program::Slice whole, std::uint64_t parts) {
  if (parts == 1 || whole.buffer == program::no_buffer) return whole;
  whole.axis = mesh::Axis::dp;
  whole.count /= parts;
  whole.step = whole.count;
  return whole;
}

/// Cuts `count` elements into pieces that fit into an op, whose extents have 32 bits, and calls
/// visit(columns, piece) for each. piece(slice) returns that piece of a slice as a matrix of one
/// row.
template <class Visit>
void for_each_piece(std::uint64_t count, const Visit& visit) {
  constexpr std::uint64_t most = std::uint64_t{1} << 31U;
  for (std::uint64_t done = 0; done < count; done += most) {
    const std::uint64_t columns = std::min(most, count - done);
    visit(static_cast<std::uint32_t>(columns), [&](program::Slice slice) {
      slice.offset += done;
      slice.count = columns;
      return program::Matrix{.slice = slice, .row_stride = columns};
    });
  }
}

/// Writes dst = src for slices with the same number of elements. The place of either may depend on
/// a mesh coordinate.
inline void copy_flat(program::Builder& builder, program::StreamId stream,
                      const program::Slice& src, const program::Slice& dst) {
  for_each_piece(src.count, [&](std::uint32_t columns, const auto& piece) {
    builder.emit(
        stream,
        program::Copy{
            .rows = 1, .columns = columns, .batch = 1, .src = piece(src), .dst = piece(dst)});
  });
}

/// Writes sum = sum + addend for slices with the same number of elements.
inline void add_flat(program::Builder& builder, program::StreamId stream,
                     const program::Slice& addend, const program::Slice& sum) {
  for_each_piece(sum.count, [&](std::uint32_t columns, const auto& piece) {
    builder.emit(
        stream,
        program::Add{
            .rows = 1, .columns = columns, .a = piece(sum), .b = piece(addend), .dst = piece(sum)});
  });
}

/// Fills every element with `value`.
inline void fill_flat(program::Builder& builder, const program::Slice& dst, double value) {
  if (dst.count == 0) return;
  builder.emit(0, program::Fill{.dst = dst,
                                .shard = {.extents = {1, 1, dst.count}, .local = {0, 0, 1}},
                                .source = program::FillSource::constant,
                                .value = value});
}

/// Buffers of one kind that are used in turn, by streams that wait for each other when they use the
/// same buffer. Buffers that are allocated and released each time would not share storage, since
/// the builder never gives freed storage to an op that would have to wait for it.
class Slots {
 public:
  /// At least `least` buffers are allocated before one is used again.
  Slots(program::Builder& builder, const program::Buffer& kind, std::size_t least)
      : builder_(&builder), kind_(kind), least_(least) {}

  /// Returns the buffer that has been free for the longest time, or a new one if fewer than `least`
  /// were allocated or none is free.
  [[nodiscard]] program::BufferId take() {
    if (made_ < least_ || free_.empty()) {
      ++made_;
      return builder_->allocate(kind_);
    }
    const program::BufferId slot = free_.front();
    free_.pop_front();
    return slot;
  }
  /// Marks a buffer as free: ops that are written later may overwrite it.
  void give_back(program::BufferId slot) { free_.push_back(slot); }
  /// Releases all buffers. All must have been given back, and none may be used again.
  void release() {
    for (const program::BufferId slot : free_) builder_->release(slot);
    free_.clear();
  }

 private:
  program::Builder* builder_;
  program::Buffer kind_;
  std::size_t least_, made_ = 0;
  std::deque<program::BufferId> free_;
};

}  // namespace isoscale::workloads::stack
