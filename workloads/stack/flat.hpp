// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>

#include "program/builder.hpp"
#include "workloads/stack/matrix.hpp"

/// Ops on consecutive elements.
namespace isoscale::workloads::stack {

/// Elements offset ... offset + count - 1 of a buffer; none of no buffer.
[[nodiscard]] inline program::Slice flat(program::BufferId buffer, std::uint64_t offset,
                                         std::uint64_t count) {
  if (buffer == program::no_buffer) return {};
  return {.buffer = buffer, .offset = offset, .count = count};
}

/// What a rank has of `whole` when it is cut into `parts` equal parts, one for each coordinate
/// along dp.
[[nodiscard]] inline program::Slice own_part(program::Slice whole, std::uint64_t parts) {
  if (parts == 1 || whole.buffer == program::no_buffer) return whole;
  whole.axis = mesh::Axis::dp;
  whole.count /= parts;
  whole.step = whole.count;
  return whole;
}

/// Calls visit(columns, piece) for pieces that fit into an op, whose extents have 32 bits; piece
/// gives a slice's part of it as a matrix of one row.
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

/// dst = src, of as many elements, any number of them. Either may move with a coordinate.
inline void copy_flat(program::Builder& builder, program::StreamId stream,
                      const program::Slice& src, const program::Slice& dst) {
  for_each_piece(src.count, [&](std::uint32_t columns, const auto& piece) {
    builder.emit(
        stream,
        program::Copy{
            .rows = 1, .columns = columns, .batch = 1, .src = piece(src), .dst = piece(dst)});
  });
}

/// sum = sum + addend, of as many elements.
inline void add_flat(program::Builder& builder, program::StreamId stream,
                     const program::Slice& addend, const program::Slice& sum) {
  for_each_piece(sum.count, [&](std::uint32_t columns, const auto& piece) {
    builder.emit(
        stream,
        program::Add{
            .rows = 1, .columns = columns, .a = piece(sum), .b = piece(addend), .dst = piece(sum)});
  });
}

/// Every element = value.
inline void fill_flat(program::Builder& builder, const program::Slice& dst, double value) {
  if (dst.count == 0) return;
  builder.emit(0, program::Fill{.dst = dst,
                                .shard = {.extents = {1, 1, dst.count}, .local = {0, 0, 1}},
                                .source = program::FillSource::constant,
                                .value = value});
}

}  // namespace isoscale::workloads::stack
