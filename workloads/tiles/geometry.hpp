// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "workloads/api/workload.hpp"
#include "workloads/stack/geometry.hpp"

/// Convolutions of images that are cut into tiles: rows of tiles lie along cp, columns along tp.
namespace isoscale::workloads::tiles {

/// Pixels of an image.
struct Extent {
  std::uint64_t rows = 0, columns = 0;
};
/// "256" or "256x512". Throws base::UsageError for what is neither, or beyond a million a side.
[[nodiscard]] Extent parse_image(std::string_view text);

enum class Boundary : std::uint8_t {
  periodic,  ///< the image's other side
  fixed,     ///< zeros
};

/// Some pixels of a tile; rows and columns count from the tile's own first.
struct Region {
  std::uint64_t row = 0, column = 0, rows = 0, columns = 0;
  [[nodiscard]] bool empty() const { return rows == 0 || columns == 0; }
};

/// The sizes of what one rank holds: its tile of some samples, in a buffer with a halo around it.
/// Elements are ordered [row][column][sample][channel]: a row of pixels of all samples is then one
/// matrix, and rows of pixels have one stride.
struct Geometry {
  /// `at` matters only where programs differ: along cp and tp of an image with a fixed boundary.
  Geometry(const Request& request, const mesh::Coordinates& at);

  int tiles_down, tiles_across;  ///< extents of cp and tp
  Extent whole;                  ///< the image
  Extent tile;
  std::uint64_t samples, whole_samples;  ///< of this rank, of all
  std::uint64_t channels;
  std::uint64_t kernel;  ///< pixels of a side of the window
  std::uint64_t halo;    ///< pixels: kernel / 2
  int layers;
  Boundary boundary;
  bool above, below, left, right;  ///< whether another rank's tile is there
  double residual_gain;            ///< g = 0.5 / layers: keeps a linear stack bounded

  [[nodiscard]] std::uint64_t taps() const { return kernel * kernel; }
  /// Elements of a pixel of all samples.
  [[nodiscard]] std::uint64_t pixel() const { return samples * channels; }
  /// Elements from one row of pixels to the next in a buffer.
  [[nodiscard]] std::uint64_t line() const { return (tile.columns + 2 * halo) * pixel(); }
  /// Elements of a buffer: the tile and its halo.
  [[nodiscard]] std::uint64_t padded() const { return (tile.rows + 2 * halo) * line(); }
  /// The place at which pixel (row, column) of the tile begins in a buffer, counted from the halo's
  /// first: the tile's own first pixel is (halo, halo).
  [[nodiscard]] std::uint64_t place(std::uint64_t row, std::uint64_t column) const {
    return row * line() + column * pixel();
  }
  /// From the tile's first element to its last, the halo between its rows included.
  [[nodiscard]] std::uint64_t span() const {
    return (tile.rows - 1) * line() + tile.columns * pixel();
  }
  [[nodiscard]] Region all() const { return {0, 0, tile.rows, tile.columns}; }
  /// The pixels that need no other rank's; empty when there are none.
  [[nodiscard]] Region interior() const;
  /// True if the halo columns ever hold anything but zeros.
  [[nodiscard]] bool has_columns() const {
    return tiles_across > 1 || boundary == Boundary::periodic;
  }
  /// The places of the tile's elements in the image batch, [row][column][sample][channel].
  [[nodiscard]] program::Shard shard() const;
};

/// A rank's coordinates where programs differ, 0 along the other axes: under a fixed boundary 0 for
/// the first tile of an axis, 1 for those between, the last for the last.
[[nodiscard]] mesh::Coordinates program_at(const Request& request, const mesh::Coordinates& at);

}  // namespace isoscale::workloads::tiles
