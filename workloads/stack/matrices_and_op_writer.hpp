// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "program/builder.hpp"
#include "program/op.hpp"
#include "workloads/stack/partitioning.hpp"

namespace isoscale::workloads::stack {

/// Converts an extent to the 32-bit type of op extents. The value must be below 2^32, which
/// require_tensor() has checked for the largest one, the rows of a softmax.
inline std::uint32_t extent(std::uint64_t value) { return static_cast<std::uint32_t>(value); }

/// The layout of matrices in a slice, in elements: the first one begins at `offset`, its rows are
/// `row_stride` apart, and the `batch` matrices are `batch_stride` apart.
struct Layout {
  std::uint64_t rows = 0, columns = 0, row_stride = 0;
  std::uint64_t offset = 0, batch = 1, batch_stride = 0;
  std::uint64_t tp_step = 0;  ///< added to the offset for each step along tp
};

[[nodiscard]] inline Matrix matrix(const Slice& in, const Layout& layout) {
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
[[nodiscard]] inline Matrix dense(const Slice& in, std::uint64_t rows, std::uint64_t columns) {
  return matrix(in, {.rows = rows, .columns = columns, .row_stride = columns});
}

/// Returns the rows `first` ... first + rows - 1 of a matrix with `columns` columns.
[[nodiscard]] inline Matrix rows_of(const Matrix& whole, std::uint64_t first, std::uint64_t rows,
                                    std::uint64_t columns) {
  Matrix part = whole;
  part.slice.offset += first * whole.row_stride;
  part.slice.count = (rows - 1) * whole.row_stride + columns;
  return part;
}

// The functions below that take slices treat a slice as consecutive elements.

/// Returns the elements `offset` ... offset + count - 1 of a buffer; an empty slice for no_buffer.
[[nodiscard]] inline Slice flat(BufferId buffer, std::uint64_t offset, std::uint64_t count) {
  if (buffer == no_buffer) return {};
  return {.buffer = buffer, .offset = offset, .count = count};
}

/// Writes dst = src for `batch` matrices of `rows` x `columns`.
inline void copy(Builder& builder, StreamId stream, std::uint64_t rows, std::uint64_t columns,
                 const Matrix& src, const Matrix& dst, std::uint64_t batch = 1) {
  builder.emit(stream, Copy{.rows = extent(rows),
                            .columns = extent(columns),
                            .batch = extent(batch),
                            .src = src,
                            .dst = dst});
}

/// Writes dst = src for slices with the same number of elements. The offset of either slice may
/// depend on the rank's mesh coordinates (Slice::step).
inline void copy_flat(Builder& builder, StreamId stream, const Slice& src, const Slice& dst) {
  const std::vector<Slice> from = program::pieces_of(src), to = program::pieces_of(dst);
  for (std::size_t i = 0; i < from.size(); ++i) {
    builder.emit(stream, program::row_copy(from[i], to[i]));
  }
}

/// Writes sum = sum + addend for slices with the same number of elements.
inline void add_flat(Builder& builder, StreamId stream, const Slice& addend, const Slice& sum) {
  const std::vector<Slice> sums = program::pieces_of(sum), addends = program::pieces_of(addend);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    builder.emit(stream, program::row_sum(sums[i], addends[i], sums[i]));
  }
}

/// Fills every element with `value`.
inline void fill_flat(Builder& builder, const Slice& dst, double value) {
  if (dst.count > 0) builder.emit(0, program::constant_fill(dst, value));
}

/// Writes a collective over the groups along `axes`. `send` and `receive` are the same slice if the
/// collective works in place.
inline void communicate(Builder& builder, StreamId stream, CollectiveKind kind, mesh::AxisSet axes,
                        const Slice& send, const Slice& receive) {
  builder.emit(stream, Collective{.kind = kind, .axes = axes, .send = send, .receive = receive});
}

/// Writes one exchange around the ring of an axis: `outgoing` goes to the next rank, and `incoming`
/// comes from the previous one.
inline void pass_on(Builder& builder, StreamId stream, mesh::Axis axis, const Slice& outgoing,
                    const Slice& incoming) {
  builder.emit(stream, Exchange{.transfers = {program::send_to(axis, +1, outgoing),
                                              program::receive_from(axis, -1, incoming)}});
}

/// Says what a buffer is for. A number means: an activation that is kept for the backward pass of
/// the microbatch with this number (Role::activation). No number means: an intermediate result
/// (Role::workspace).
using KeptFor = std::optional<int>;

/// The base of the classes that write the ops of one rank. It has the builder, the rank's sizes and
/// the element types.
class OpWriter {
 public:
  OpWriter(Builder& builder, const Geometry& geometry, const Types& types)
      : builder_(builder), g_(geometry), types_(types) {}

  /// Adds a temporary buffer of `count` elements of the compute type.
  [[nodiscard]] BufferId new_buffer(std::uint64_t count, KeptFor kept = std::nullopt) {
    return builder_.temporary(buffer_of(count, kept));
  }

 protected:
  [[nodiscard]] program::Buffer buffer_of(std::uint64_t count, KeptFor kept) const {
    return {.dtype = types_.compute,
            .role = kept ? Role::activation : Role::workspace,
            .microbatch = kept.value_or(-1),
            .count = count};
  }
  /// Returns a whole buffer as a matrix.
  [[nodiscard]] Matrix dense(BufferId buffer, std::uint64_t rows, std::uint64_t columns) const {
    return stack::dense(builder_.whole(buffer), rows, columns);
  }
  [[nodiscard]] static Matrix dense(const Slice& in, std::uint64_t rows, std::uint64_t columns) {
    return stack::dense(in, rows, columns);
  }
  /// Returns a view of the gate (part 0) or of the up-projection (part 1) in their common output
  /// [rows, parts * ffn].
  [[nodiscard]] Matrix gate_part(BufferId up, std::uint64_t rows, std::uint64_t part) const {
    return matrix(builder_.whole(up), {.rows = rows,
                                       .columns = g_.ffn,
                                       .row_stride = g_.up_parts * g_.ffn,
                                       .offset = part * g_.ffn});
  }
  /// Writes inner = gate + up. The sum stands in for the gated product of a real model, since it
  /// moves the same bytes.
  void add_gate(std::uint64_t rows, BufferId up, BufferId inner) {
    builder_.emit(0, Add{.rows = extent(rows),
                         .columns = extent(g_.ffn),
                         .a = gate_part(up, rows, 0),
                         .b = gate_part(up, rows, 1),
                         .dst = dense(inner, rows, g_.ffn)});
  }
  /// Writes the gradient of add_gate(), which copies d_inner to both parts of d_up.
  void copy_to_gate(std::uint64_t rows, BufferId d_inner, BufferId d_up) {
    Matrix parts = gate_part(d_up, rows, 0);
    parts.slice.count = rows * g_.up_parts * g_.ffn;
    parts.batch_stride = g_.ffn;
    copy(builder_, 0, rows, g_.ffn, dense(d_inner, rows, g_.ffn), parts, g_.up_parts);
  }

  Builder& builder_;
  const Geometry& g_;
  const Types& types_;
};

/// Equal buffers that are used in turn. If two streams use the same buffer, the later use waits for
/// the earlier one. A buffer of its own for each use would need more memory, since the builder
/// never gives freed storage to an op that would have to wait for it.
class Slots {
 public:
  /// At least `least` buffers are made before one is used again.
  Slots(Builder& builder, const program::Buffer& kind, std::size_t least)
      : builder_(&builder), kind_(kind), least_(least) {}

  /// Returns the buffer that has been free for the longest time, or a new one if fewer than `least`
  /// were made or none is free.
  [[nodiscard]] BufferId take() {
    if (made_ < least_ || free_.empty()) {
      ++made_;
      return builder_->temporary(kind_);
    }
    const BufferId slot = free_.front();
    free_.pop_front();
    return slot;
  }
  /// Marks a buffer as free: ops that are written later may overwrite it.
  void give_back(BufferId slot) { free_.push_back(slot); }

 private:
  Builder* builder_;
  program::Buffer kind_;
  std::size_t least_, made_ = 0;
  std::deque<BufferId> free_;
};

}  // namespace isoscale::workloads::stack
