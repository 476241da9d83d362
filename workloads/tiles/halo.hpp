// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "program/builder.hpp"
#include "workloads/tiles/geometry.hpp"

namespace isoscale::workloads::tiles {

/// When the columns beside a tile's own rows may change: as soon as possible, or only once what
/// reads the tile between begin and end has been written.
enum class Columns : std::uint8_t { early, late };

/// Fills the halo of a tile with the pixels around it. Rows of halo travel first, each into its
/// place; then columns, which take the halo rows' ends along: so a corner's pixels come in two
/// hops, and no message goes to a diagonal neighbour. Columns are packed and unpacked, for they are
/// strided.
class Halo {
 public:
  /// Messages go on `stream`.
  Halo(program::Builder& builder, const Geometry& geometry, program::DType type,
       program::StreamId stream)
      : builder_(builder), g_(geometry), type_(type), stream_(stream) {}

  /// Sends and receives. What is emitted between begin and end may read the tile and, with
  /// Columns::early, the halo on the sides where there is no other rank's tile.
  void begin(program::BufferId tile, Columns columns);
  /// The halo is complete for what is emitted from now on.
  void end(program::BufferId tile, Columns columns);

 private:
  struct Sides {
    program::BufferId left = program::no_buffer, right = program::no_buffer;
  };

  void exchange_rows(program::BufferId tile);
  void exchange_columns(program::BufferId tile);
  void wrap_rows(program::BufferId tile);
  /// `rows` from halo row `row` on, and as many again `apart` rows further, `times` times.
  void wrap_columns(program::BufferId tile, program::StreamId stream, std::uint64_t row,
                    std::uint64_t rows, std::uint64_t times, std::uint64_t apart);
  void unpack(program::BufferId tile);
  [[nodiscard]] program::BufferId packed() const;
  /// All rows, the halo's too, of as many columns as the halo has, from halo column `column` on.
  [[nodiscard]] program::Matrix columns_of(program::BufferId tile, std::uint64_t column) const;
  [[nodiscard]] program::Matrix dense_columns(program::BufferId packed) const;
  void copy_columns(const program::Matrix& from, const program::Matrix& to);

  program::Builder& builder_;
  const Geometry& g_;
  program::DType type_;
  program::StreamId stream_;
  Sides received_{};
};

}  // namespace isoscale::workloads::tiles
