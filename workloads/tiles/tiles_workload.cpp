// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "base/text.hpp"
#include "workloads/tiles/image_tiles.hpp"

namespace isoscale::workloads::tiles {

namespace {

/// One side of the image, and the number of tiles into which it is cut.
struct Side {
  std::string_view pixels;  ///< its unit in messages: "rows" or "columns"
  std::string_view axis;
  std::uint64_t whole = 0, tile = 0;
  int tiles = 1;
};

/// Throws base::UsageError if tiles are smaller than the halo, which can hold pixels of a direct
/// neighbour only.
void require_halo(const Geometry& g, const Side& side) {
  if (side.tile >= g.halo) return;
  const std::uint64_t enough = g.halo * static_cast<std::uint64_t>(side.tiles);
  std::uint64_t fewer = static_cast<std::uint64_t>(side.tiles);
  while (fewer > 1 && (side.whole % fewer != 0 || side.whole / fewer < g.halo)) --fewer;
  const bool has_fewer = side.whole >= g.halo && fewer < static_cast<std::uint64_t>(side.tiles);
  throw usage_error(
      "an image of {} {} over {}={} leaves tiles of {}, and kernel={} reaches {} into the next; "
      "use {}an image of {} {} or more",
      side.whole, side.pixels, side.axis, side.tiles, side.tile, g.kernel, g.halo,
      has_fewer ? fmt::format("{}={}, or ", side.axis, fewer) : "", enough, side.pixels);
}

/// Throws base::UsageError if tiles are too large for a GEMM, which counts rows, and the elements
/// between two rows, in signed 32-bit numbers.
void require_countable(const Geometry& g) {
  constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max();
  const std::uint64_t columns = g.tile.columns + 2 * g.halo;
  const std::uint64_t pixels = (g.tile.rows + 2 * g.halo) * columns;
  const std::uint64_t fit = most / pixels;  // number of samples that fit
  if (fit >= g.samples && g.line() <= most) return;
  throw usage_error(
      "tiles of {} x {} pixels, {} samples and {} channels are more than a product can count: {} "
      "pixels of all samples with their halo, {} values of a row; at most {} of each; use more "
      "tiles or a smaller batch",
      g.tile.rows, g.tile.columns, g.samples, g.channels, pixels * g.samples, g.line(), most);
}

/// Throws base::UsageError for fp8 and for tiles that cannot be computed.
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

constexpr std::uint64_t most_pixels = 1'000'000;  // the most pixels on one side of the image

std::optional<std::uint64_t> side(std::string_view text) {
  const auto number = base::number_in<std::uint64_t>(text);
  return number && *number != 0 && *number <= most_pixels ? number : std::nullopt;
}

/// Reads "256" or "256x512". Throws base::UsageError for any other text, and for more than a
/// million pixels on a side.
Extent parse_image(std::string_view key, std::string_view text) {
  const std::size_t cross = text.find('x');
  const auto rows = side(text.substr(0, cross));
  const auto columns = cross == std::string_view::npos ? rows : side(text.substr(cross + 1));
  if (rows && columns) return {.rows = *rows, .columns = *columns};
  throw usage_error(
      "option {} = {}: it takes pixels of a side, or rows x columns, such as 256 or "
      "256x512, from 1 to {}",
      key, base::quoted(text), most_pixels);
}

void require_share(long long batch, int dp) {
  if (batch % dp == 0) return;
  throw NumberError(fmt::format("batch={} does not divide by dp={}", batch, dp), "batch",
                    nearest_accepted(batch, [&](long long other) { return other % dp == 0; }));
}

std::span<const OptionSpec> option_table() {
  static const std::array table{
      option::parsed<&Values::image, parse_image>(
          "image", "128",
          "pixels of a side, or rows x columns (256x512): of the whole "
          "image, under weak scaling of each tile"),
      option::integer<&Values::channels>("channels", "32", {1, 65'536},
                                         "values of a pixel, in every layer"),
      option::choice<&Values::kernel>(
          "kernel", "3", {"3", "5"},
          "side of the convolution's window; a halo is half of it wide, rounded down"),
      option::integer<&Values::layers>("layers", "4", {1, 10'000},
                                       "convolutions that follow each other"),
      option::integer<&Values::batch>("batch", "4", {1, 1'000'000},
                                      "images per step (of one dp replica under weak scaling)"),
      option::choice<&Values::boundary>("boundary", "periodic", {"periodic", "fixed"},
                                        "outside the image: its other side, or zeros"),
      option::toggle<&Values::overlap>("overlap", "on",
                                       "halos and gradients travel on streams of their own while "
                                       "the interior is computed, or all in turn"),
      option::bytes<&Values::bucket>(
          "bucket", "25MiB", {},
          "bytes of gradients that travel in one all-reduce, at least; whole layers"),
      option::choice<&Values::optimizer>("optimizer", "sgd", {"sgd", "adam"},
                                         "what updates the weights, bucket by bucket"),
  };
  return table;
}

std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling) {
  const Extent image = values_of(base).image;
  if (scaling == Scaling::weak) return {};
  return {{mesh::Axis::cp, static_cast<int>(image.rows), "rows of the image"},
          {mesh::Axis::tp, static_cast<int>(image.columns), "columns of the image"}};
}

/// Strong scaling: the image is cut into cp x tp tiles, and the batch is split over dp. Weak
/// scaling: each tile has the size of the given image, and each dp replica has the given batch.
/// Throws base::UsageError, with the numbers and what would work, for a batch that cannot be
/// divided, for tiles smaller than the halo or too large for a GEMM, and for fp8.
Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling) {
  Request result = base;
  result.mesh = mesh;
  auto batch = static_cast<long long>(values_of(base).batch);
  if (scaling == Scaling::weak) {
    result.growth = static_cast<double>(mesh.cp) * mesh.tp;
    batch *= mesh.dp;
  }
  require_share(batch, mesh.dp);
  result.options["batch"] = std::to_string(batch);
  require_tiles(result);
  return result;
}

/// Returns the twin, a small request for verification: the same grid, boundary, kernel and
/// optimizer, but small tiles and few channels, layers and samples.
Request twin(const Request& request) {
  const Geometry real{request, {}};
  Request small = request;
  small.keep = Keep::observables;
  // A tile of the twin is large enough for a rim on both sides and an interior in between, unless
  // the real tile is smaller.
  const std::uint64_t least = 2 * real.halo + 2;
  small.growth = 1;
  small.options["image"] = fmt::format(
      "{}x{}", std::min(real.tile.rows, least) * static_cast<std::uint64_t>(real.tiles_down),
      std::min(real.tile.columns, least + 1) * static_cast<std::uint64_t>(real.tiles_across));
  const std::uint64_t samples = std::min<std::uint64_t>(real.samples, 2);
  small.options["batch"] = std::to_string(samples * static_cast<std::uint64_t>(request.mesh.dp));
  small.options["channels"] = std::to_string(std::min<std::uint64_t>(real.channels, 8));
  const int layers = std::min(real.layers, 4);
  small.options["layers"] = std::to_string(layers);
  // The twin (this small request) has about as many buckets as the real request, but at most one
  // for each layer, and at least two if it has several layers.
  const std::uint64_t element =
      program::element_size(stack::types_of(request.precision).accumulate);
  const std::size_t buckets =
      stack::buckets_of(parameters_of(real), values_of(request).bucket, element).size();
  const auto wanted = std::clamp(buckets, static_cast<std::size_t>(std::min(2, layers)),
                                 static_cast<std::size_t>(layers));
  const std::uint64_t each = (static_cast<std::uint64_t>(layers) + wanted - 1) / wanted;
  const std::uint64_t kernel = parameters_of(Geometry{small, {}}).front().count();
  small.options["bucket"] = std::to_string(each * kernel * element);
  return small;
}

Request reference(const Request& twin) {
  Request one = twin;
  one.mesh = {};
  one.precision = Precision::f64;
  return one;
}

double work_per_step(const Request& request) {
  const Geometry geometry{request, {}};
  return static_cast<double>(geometry.whole.rows) * static_cast<double>(geometry.whole.columns) *
         static_cast<double>(geometry.whole_samples);
}

/// Returns the grid that is closest to a square. If it is no square, its longer side is along cp,
/// where halos need not be packed.
mesh::Request square_grid(int ranks) {
  int across = static_cast<int>(std::sqrt(static_cast<double>(ranks)));
  while (ranks % across != 0) --across;
  // dp is set to 1 explicitly; otherwise it would take ranks that are meant for the grid.
  return {{mesh::Axis::tp, across}, {mesh::Axis::cp, ranks / across}, {mesh::Axis::dp, 1}};
}

}  // namespace

Values values_of(const Request& request) {
  return typed_options<Values>(option_table(), request.options);
}

Workload workload() {
  return {.name = "tiles",
          .description = "convolutions of images cut into tiles: halo exchange on a 2-D grid",
          .options = option_table(),
          .axes = {mesh::Axis::tp, mesh::Axis::cp, mesh::Axis::dp},
          .natural_mesh = square_grid,
          .limits = limits,
          .scale = scale,
          .build = build,
          .twin = twin,
          .reference = reference,
          .work_per_step = work_per_step,
          .throughput_unit = "pixels/s",
          .model_use = ModelUse::none};
}

Geometry::Geometry(const Request& request, const mesh::Coordinates& at)
    : tiles_down(request.mesh.cp), tiles_across(request.mesh.tp) {
  const Values options = values_of(request);
  const auto down = static_cast<std::uint64_t>(tiles_down);
  const auto across = static_cast<std::uint64_t>(tiles_across);
  const Extent given = options.image;
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
  return {.extents = {tile.rows, tile.columns, pixel()},
          .local = {line(), pixel(), 1},
          .global = {whole_line, whole_pixel, 1},
          .base = 0,
          .steps = {.tp = tile.columns * whole_pixel, .cp = tile.rows * whole_line, .dp = pixel()}};
}

}  // namespace isoscale::workloads::tiles
