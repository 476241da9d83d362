// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "workloads/api/workload.hpp"
#include "workloads/stack/geometry.hpp"

/// Convolutions of images that are cut into tiles: rows of tiles are along cp, columns along tp.
namespace isoscale::workloads::tiles {

/// Pixels of an image.
struct Extent {
  std::uint64_t rows = 0, columns = 0;
};
/// Reads "256" or "256x512". Throws base::UsageError for other texts, or more than a million pixels
/// a side.
[[nodiscard]] Extent parse_image(std::string_view text);

enum class Boundary : std::uint8_t {
  periodic,  ///< the image's other side
  fixed,     ///< zeros
};

/// Some pixels of a tile; rows and columns are counted from the tile's own first pixel.
struct Region {
  std::uint64_t row = 0, column = 0, rows = 0, columns = 0;
  [[nodiscard]] bool empty() const { return rows == 0 || columns == 0; }
};

/// The sizes of one rank's part: its tile of some samples, in a buffer with a halo around it.
/// Elements are ordered [row][column][sample][channel]: a row of pixels of all samples is then one
/// matrix, and rows of pixels have one stride.
struct Geometry {
  /// `at` only matters where programs differ: along cp and tp of an image with a fixed boundary.
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
  bool above, below, left, right;  ///< true if another rank's tile is there
  double residual_gain;            ///< g = 0.5 / layers: keeps a linear stack bounded

  [[nodiscard]] std::uint64_t taps() const { return kernel * kernel; }
  /// Returns the elements of a pixel of all samples.
  [[nodiscard]] std::uint64_t pixel() const { return samples * channels; }
  /// Returns the elements from one row of pixels to the next in a buffer.
  [[nodiscard]] std::uint64_t line() const { return (tile.columns + 2 * halo) * pixel(); }
  /// Returns the elements of a buffer: the tile and its halo.
  [[nodiscard]] std::uint64_t padded() const { return (tile.rows + 2 * halo) * line(); }
  /// Returns the place in a buffer at which pixel (row, column) begins, counted from the halo's
  /// first pixel: the tile's own first pixel is (halo, halo).
  [[nodiscard]] std::uint64_t place(std::uint64_t row, std::uint64_t column) const {
    return row * line() + column * pixel();
  }
  /// Returns the elements from the tile's first to its last, including the halo between its rows.
  [[nodiscard]] std::uint64_t span() const {
    return (tile.rows - 1) * line() + tile.columns * pixel();
  }
  [[nodiscard]] Region all() const { return {0, 0, tile.rows, tile.columns}; }
  /// Returns the pixels that need no other rank's; empty if there are none.
  [[nodiscard]] Region interior() const;
  /// True if the halo columns ever hold anything but zeros.
  [[nodiscard]] bool has_columns() const {
    return tiles_across > 1 || boundary == Boundary::periodic;
  }
  /// Returns the places of the tile's elements in the image batch, [row][column][sample][channel].
  [[nodiscard]] program::Shard shard() const;
};

/// Returns a rank's coordinates along axes where programs differ, 0 along the others. Under a fixed
/// boundary they are 0 for the first tile of an axis, 1 for those between, and the last coordinate
/// for the last tile.
[[nodiscard]] mesh::Coordinates program_at(const Request& request, const mesh::Coordinates& at);

}  // namespace isoscale::workloads::tiles
