// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/tiles/require_tiles.hpp"

#include <fmt/format.h>

#include <limits>
#include <string_view>

#include "base/error.hpp"
#include "workloads/tiles/geometry.hpp"

namespace isoscale::workloads::tiles {
namespace {

/// A side of the image, and how many tiles share it.
struct Side {
  std::string_view pixels;  ///< what it counts: "rows"
  std::string_view axis;
  std::uint64_t whole = 0, tile = 0;
  int tiles = 1;
};

/// A neighbour's pixels are all of the halo: none comes from beyond it.
void require_halo(const Geometry& g, const Side& side) {
  if (side.tile >= g.halo) return;
  const std::uint64_t enough = g.halo * static_cast<std::uint64_t>(side.tiles);
  std::uint64_t fewer = static_cast<std::uint64_t>(side.tiles);
  while (fewer > 1 && (side.whole % fewer != 0 || side.whole / fewer < g.halo)) --fewer;
  const bool has_fewer = side.whole >= g.halo && fewer < static_cast<std::uint64_t>(side.tiles);
  throw base::UsageError(fmt::format(
      "an image of {} {} over {}={} leaves tiles of {}, and kernel={} reaches {} into the next; "
      "use "
      "{}an image of {} {} or more",
      side.whole, side.pixels, side.axis, side.tiles, side.tile, g.kernel, g.halo,
      has_fewer ? fmt::format("{}={}, or ", side.axis, fewer) : "", enough, side.pixels));
}

/// Products count rows, and what lies between two, in 32 bits with a sign.
void require_countable(const Geometry& g) {
  constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max();
  const std::uint64_t columns = g.tile.columns + 2 * g.halo;
  const std::uint64_t pixels = (g.tile.rows + 2 * g.halo) * columns;
  const std::uint64_t fit = most / pixels;  // samples
  if (fit >= g.samples && g.line() <= most) return;
  throw base::UsageError(fmt::format(
      "tiles of {} x {} pixels, {} samples and {} channels are more than a product can count: {} "
      "pixels of all samples with their halo, {} values of a row; at most {} of each; use more "
      "tiles or a smaller batch",
      g.tile.rows, g.tile.columns, g.samples, g.channels, pixels * g.samples, g.line(), most));
}

}  // namespace

void require_tiles(const Request& scaled) {
  if (scaled.precision == Precision::fp8) {
    throw base::UsageError(
        "workload tiles does not multiply in fp8: its kernels would need a copy of the image for "
        "every scale; use --dtype bf16 or f16");
  }
  const Geometry g{scaled, {}};
  require_halo(g, {.pixels = "rows",
                   .axis = "cp",
                   .whole = g.whole.rows,
                   .tile = g.tile.rows,
                   .tiles = g.tiles_down});
  require_halo(g, {.pixels = "columns",
                   .axis = "tp",
                   .whole = g.whole.columns,
                   .tile = g.tile.columns,
                   .tiles = g.tiles_across});
  require_countable(g);
}

}  // namespace isoscale::workloads::tiles
