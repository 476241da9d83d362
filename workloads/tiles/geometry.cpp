// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/tiles/geometry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "workloads/tiles/tiles.hpp"

namespace isoscale::workloads::tiles {
namespace {

constexpr std::uint64_t most_pixels = 1'000'000;  // of one side of the image

std::optional<std::uint64_t> side(std::string_view text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end || number == 0 || number > most_pixels) {
    return std::nullopt;
  }
  return number;
}

std::size_t index(mesh::Axis axis) { return static_cast<std::size_t>(axis); }

}  // namespace

Extent parse_image(std::string_view text) {
  const std::size_t cross = text.find('x');
  const auto rows = side(text.substr(0, cross));
  const auto columns = cross == std::string_view::npos ? rows : side(text.substr(cross + 1));
  if (rows && columns) return {.rows = *rows, .columns = *columns};
  throw usage_error(
      "option image = {}: it takes pixels of a side, or rows x columns, such as 256 or "
      "256x512, from 1 to {}",
      base::quoted(text), most_pixels);
}

Geometry::Geometry(const Request& request, const mesh::Coordinates& at)
    : tiles_down(request.mesh.cp), tiles_across(request.mesh.tp) {
  const Values options = values_of(request);
  const auto down = static_cast<std::uint64_t>(tiles_down);
  const auto across = static_cast<std::uint64_t>(tiles_across);
  const Extent given = parse_image(options.image);
  // If weak scaling has grown the request, the option `image` is the size of a tile, and not of the
  // image.
  if (request.growth > 1) {
    tile = given;
    whole = {.rows = given.rows * down, .columns = given.columns * across};
  } else {
    whole = given;
    tile = {.rows = given.rows / down, .columns = given.columns / across};
  }
  whole_samples = options.batch;
  samples = whole_samples / static_cast<std::uint64_t>(request.mesh.dp);
  channels = options.channels;
  kernel = options.kernel;
  halo = kernel / 2;
  layers = options.layers;
  boundary = options.boundary;
  const bool wraps = boundary == Boundary::periodic;
  above = tiles_down > 1 && (wraps || at.cp > 0);
  below = tiles_down > 1 && (wraps || at.cp < tiles_down - 1);
  left = tiles_across > 1 && (wraps || at.tp > 0);
  right = tiles_across > 1 && (wraps || at.tp < tiles_across - 1);
  residual_gain = 0.5 / layers;
}

Region Geometry::interior() const {
  const auto rim = [this](bool neighbour) { return neighbour ? halo : 0; };
  const std::uint64_t rim_rows = rim(above) + rim(below), rim_columns = rim(left) + rim(right);
  if (tile.rows <= rim_rows || tile.columns <= rim_columns) return {};
  return {.row = rim(above),
          .column = rim(left),
          .rows = tile.rows - rim_rows,
          .columns = tile.columns - rim_columns};
}

program::Shard Geometry::shard() const {
  const std::uint64_t whole_pixel = whole_samples * channels;
  const std::uint64_t whole_line = whole.columns * whole_pixel;
  program::Shard shard{.extents = {tile.rows, tile.columns, pixel()},
                       .local = {line(), pixel(), 1},
                       .global = {whole_line, whole_pixel, 1},
                       .base = 0,
                       .steps = {}};
  shard.steps[index(mesh::Axis::cp)] = tile.rows * whole_line;
  shard.steps[index(mesh::Axis::tp)] = tile.columns * whole_pixel;
  shard.steps[index(mesh::Axis::dp)] = pixel();
  return shard;
}

mesh::Coordinates program_at(const Request& request, const mesh::Coordinates& at) {
  if (values_of(request).boundary == Boundary::periodic) return {};
  const auto kind = [](int coordinate, int extent) {
    return coordinate == extent - 1 ? coordinate : std::min(coordinate, 1);
  };
  return {.tp = kind(at.tp, request.mesh.tp), .cp = kind(at.cp, request.mesh.cp)};
}

}  // namespace isoscale::workloads::tiles
