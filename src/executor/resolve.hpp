// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "program/program.hpp"

namespace isoscale::executor {

using ArenaPointers = std::array<std::byte*, program::space_count>;

/// From slices to addresses, for one rank. All throw base::Error when a slice lies outside of its
/// buffer, or a buffer outside of its arena.
class Resolver {
 public:
  Resolver(const program::RankProgram& program, const mesh::Shape& mesh, int rank,
           const ArenaPointers& arenas);

  [[nodiscard]] std::byte* address(const program::Slice& slice) const;
  /// Also checks that `rows` x `columns`, batch times, lie within the matrix' slice.
  [[nodiscard]] std::byte* address(const program::Matrix& matrix, std::uint64_t rows,
                                   std::uint64_t columns, std::uint64_t batch) const;
  /// nullptr for a slice of no buffer.
  [[nodiscard]] std::byte* address_or_null(const program::Slice& slice) const;

  [[nodiscard]] program::DType dtype(const program::Slice& slice) const;
  [[nodiscard]] program::Space space(const program::Slice& slice) const;
  [[nodiscard]] std::size_t element_size(const program::Slice& slice) const;

  [[nodiscard]] const mesh::Shape& mesh() const { return mesh_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] const mesh::Coordinates& coordinates() const { return coordinates_; }

 private:
  [[nodiscard]] const program::Buffer& buffer(const program::Slice& slice) const;

  const program::RankProgram& program_;
  mesh::Shape mesh_;
  int rank_;
  mesh::Coordinates coordinates_;
  ArenaPointers arenas_;
};

}  // namespace isoscale::executor
