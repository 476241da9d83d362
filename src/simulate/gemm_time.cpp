// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "simulate/gemm_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "simulate/reached.hpp"

namespace isoscale::simulate {
namespace {

struct Tile {
  double rows = 0, columns = 0;
  /// Multiplications for each element that is loaded, of the tile's k-th part.
  [[nodiscard]] double intensity() const { return rows * columns / (rows + columns); }
};

/// A small tile loads more for each product: loads that take this share of the time of one with
/// unit intensity run beside the products, but not for nothing.
constexpr double load_cost = 20;

/// Of a tile's own rate, against that of the largest.
double tile_rate(const Tile& tile, const Tile& largest) {
  return (1 + load_cost / largest.intensity()) / (1 + load_cost / tile.intensity());
}

/// Waves of tiles (NVIDIA, "Matrix Multiplication Background", section 3.2 and 3.3), of each of
/// which the units take the time of a tile.
double tiled_seconds(const Processor& processor, const GemmShape& shape, const Tile& tile,
                     double splits, double flops) {
  const double tiles =
      std::ceil(shape.m / tile.rows) * std::ceil(shape.n / tile.columns) * shape.batch * splits;
  const double waves = std::ceil(tiles / processor.units);
  const double depth = std::ceil(shape.k / splits) + processor.tile_depth;
  return waves * 2 * tile.rows * tile.columns * depth * processor.units / flops;
}

}  // namespace

double multiply_seconds(const Processor& processor, const MatrixRate& rate,
                        const GemmShape& shape) {
  const double flops = rate.peak * reached_share(rate.reached, shape.flop());
  if (processor.units == 0 || processor.tile_rows == 0 || processor.tile_columns == 0) {
    return shape.flop() / flops;
  }
  const auto rows = static_cast<double>(processor.tile_rows);
  const auto columns = static_cast<double>(processor.tile_columns);
  const double side = std::min(rows, columns);
  const Tile largest{rows, columns};
  const std::array tiles{largest,
                         Tile{columns, rows},
                         Tile{side, side},
                         Tile{side, side / 2},
                         Tile{side / 2, side},
                         Tile{side / 2, side / 2}};
  double least = std::numeric_limits<double>::infinity();
  for (const Tile& tile : tiles) {
    // A split of k adds up parts that were written apart: worth it where there are few tiles.
    for (double splits = 1; splits <= 16 && shape.k / splits >= 512; splits *= 2) {
      least = std::min(
          least, tiled_seconds(processor, shape, tile, splits, flops * tile_rate(tile, largest)));
    }
    least =
        std::min(least, tiled_seconds(processor, shape, tile, 1, flops * tile_rate(tile, largest)));
  }
  return least;
}

}  // namespace isoscale::simulate
