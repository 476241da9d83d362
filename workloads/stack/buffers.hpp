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

/// Converts an extent to the type that ops use; those of Geometry are checked to fit.
inline std::uint32_t extent(std::uint64_t value) { return static_cast<std::uint32_t>(value); }

/// The layout of rows x columns from `offset` on, with rows `row_stride` apart, `batch` times
/// `batch_stride` apart; the slice spans exactly the elements that are touched.
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

/// Returns all of a contiguous slice as a rows x columns matrix.
[[nodiscard]] inline program::Matrix dense(const program::Slice& in, std::uint64_t rows,
                                           std::uint64_t columns) {
  return matrix(in, {.rows = rows, .columns = columns, .row_stride = columns});
}

/// Returns rows first ... first + rows - 1 of a matrix of `columns` columns.
[[nodiscard]] inline program::Matrix rows_of(const program::Matrix& whole, std::uint64_t first,
                                             std::uint64_t rows, std::uint64_t columns) {
  program::Matrix part = whole;
  part.slice.offset += first * whole.row_stride;
  part.slice.count = (rows - 1) * whole.row_stride + columns;
  return part;
}

// The functions below work on consecutive elements.

/// Returns elements offset ... offset + count - 1 of a buffer; an empty slice for no_buffer.
[[nodiscard]] inline program::Slice flat(program::BufferId buffer, std::uint64_t offset,
                                         std::uint64_t count) {
  if (buffer == program::no_buffer) return {};
  return {.buffer = buffer, .offset = offset, .count = count};
}

/// Returns this rank's part of `whole` if it is cut into `parts` equal parts, one for each
/// coordinate along dp.
[[nodiscard]] inline program::Slice own_part(program::Slice whole, std::uint64_t parts) {
  if (parts == 1 || whole.buffer == program::no_buffer) return whole;
  whole.axis = mesh::Axis::dp;
  whole.count /= parts;
  whole.step = whole.count;
  return whole;
}

/// Calls visit(columns, piece) for pieces that fit into an op, whose extents have 32 bits. `piece`
/// returns the part of a slice as a matrix of one row.
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

/// Writes dst = src, for any number of elements, as many in both. Either may move with a
/// coordinate.
inline void copy_flat(program::Builder& builder, program::StreamId stream,
                      const program::Slice& src, const program::Slice& dst) {
  for_each_piece(src.count, [&](std::uint32_t columns, const auto& piece) {
    builder.emit(
        stream,
        program::Copy{
            .rows = 1, .columns = columns, .batch = 1, .src = piece(src), .dst = piece(dst)});
  });
}

/// Writes sum = sum + addend, for as many elements in both.
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

/// Buffers of one kind that are used in turn. Streams that use them in turn wait for each other.
/// Buffers that are allocated and released would not share storage then: the builder gives freed
/// storage to no op that would have to wait for it.
class Slots {
 public:
  /// Makes at least `least` buffers before one is used again.
  Slots(program::Builder& builder, const program::Buffer& kind, std::size_t least)
      : builder_(&builder), kind_(kind), least_(least) {}

  /// Returns the buffer that has been free for longest; a new one if fewer than `least` were made,
  /// or none is free.
  [[nodiscard]] program::BufferId take() {
    if (made_ < least_ || free_.empty()) {
      ++made_;
      return builder_->allocate(kind_);
    }
    const program::BufferId slot = free_.front();
    free_.pop_front();
    return slot;
  }
  /// Returns a buffer: ops that are written later may write to it.
  void give_back(program::BufferId slot) { free_.push_back(slot); }
  /// Releases all buffers, which must have been given back and are not used again.
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
