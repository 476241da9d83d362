// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/resolve.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace isoscale::executor {

Resolver::Resolver(const program::RankProgram& program, const mesh::Shape& mesh, int rank,
                   const ArenaPointers& arenas)
    : program_(program),
      mesh_(mesh),
      rank_(rank),
      coordinates_(mesh::coordinates(mesh, rank)),
      arenas_(arenas) {}

const program::Buffer& Resolver::buffer(const program::Slice& slice) const {
  if (slice.buffer >= program_.buffers.size()) {
    throw base::Error(fmt::format("a slice names buffer {}, but the program has {} buffers",
                                  slice.buffer, program_.buffers.size()));
  }
  return program_.buffers[slice.buffer];
}

std::byte* Resolver::address(const program::Slice& slice) const {
  const program::Buffer& buffer = this->buffer(slice);
  const std::uint64_t first = slice.first(coordinates_);
  if (first > buffer.count || slice.count > buffer.count - first) {
    throw base::Error(fmt::format("elements {} to {} of buffer {} are used, but it has {} elements",
                                  first, first + slice.count, slice.buffer, buffer.count));
  }
  const auto space = static_cast<std::size_t>(buffer.space);
  const std::uint64_t size = program::element_size(buffer.dtype);
  const std::uint64_t end = buffer.offset + buffer.count * size;
  if (end > program_.arena_bytes[space]) {
    throw base::Error(fmt::format("buffer {} ends at byte {} of its arena of {} bytes",
                                  slice.buffer, end, program_.arena_bytes[space]));
  }
  return arenas_[space] + buffer.offset + first * size;
}

std::byte* Resolver::address(const program::Matrix& matrix, std::uint64_t rows,
                             std::uint64_t columns, std::uint64_t batch) const {
  const bool is_empty = rows == 0 || columns == 0 || batch == 0;
  const std::uint64_t extent =
      is_empty ? 0 : (batch - 1) * matrix.batch_stride + (rows - 1) * matrix.row_stride + columns;
  if (extent > matrix.slice.count) {
    throw base::Error(
        fmt::format("{} matrices of {} x {} span {} elements, but their slice of "
                    "buffer {} has {}",
                    batch, rows, columns, extent, matrix.slice.buffer, matrix.slice.count));
  }
  return address(matrix.slice);
}

std::byte* Resolver::address_or_null(const program::Slice& slice) const {
  return slice.buffer == program::no_buffer ? nullptr : address(slice);
}

program::DType Resolver::dtype(const program::Slice& slice) const { return buffer(slice).dtype; }

program::Space Resolver::space(const program::Slice& slice) const { return buffer(slice).space; }

std::size_t Resolver::element_size(const program::Slice& slice) const {
  return program::element_size(dtype(slice));
}

}  // namespace isoscale::executor
