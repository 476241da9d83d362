// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/tiles/scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workloads/fit.hpp"
#include "workloads/tiles/geometry.hpp"
#include "workloads/tiles/kernels.hpp"
#include "workloads/tiles/options.hpp"
#include "workloads/tiles/require_tiles.hpp"

namespace isoscale::workloads::tiles {
namespace {

OptionReader reader(const Request& request) { return {option_table(), request.options}; }

std::string image_text(const Extent& image) {
  return fmt::format("{}x{}", image.rows, image.columns);
}

long long share_of_batch(long long batch, int dp) {
  if (batch % dp == 0) return batch / dp;
  throw NumberError(fmt::format("batch={} does not divide by dp={}", batch, dp), "batch",
                    nearest_accepted(batch, [&](long long other) { return other % dp == 0; }));
}

}  // namespace

std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling) {
  const Extent image = parse_image(reader(base).text("image"));
  if (scaling == Scaling::weak) return {};
  return {{mesh::Axis::cp, static_cast<int>(image.rows), "rows of the image"},
          {mesh::Axis::tp, static_cast<int>(image.columns), "columns of the image"}};
}

Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling) {
  Request result = base;
  result.mesh = mesh;
  const long long batch = reader(base).integer("batch");
  if (scaling == Scaling::weak) {
    result.growth = static_cast<double>(mesh.cp) * mesh.tp;
    result.options["batch"] = std::to_string(batch * mesh.dp);
  } else {
    (void)share_of_batch(batch, mesh.dp);
    result.options["batch"] = std::to_string(batch);
  }
  require_tiles(result);
  return result;
}

Request twin(const Request& request) {
  const Geometry real{request, {}};
  Request small = request;
  small.keep = Keep::observables;
  // A rim on both sides and something inside, where the tile itself has that.
  const std::uint64_t least = 2 * real.halo + 2;
  small.growth = 1;
  small.options["image"] = image_text(
      {.rows = std::min(real.tile.rows, least) * static_cast<std::uint64_t>(real.tiles_down),
       .columns =
           std::min(real.tile.columns, least + 1) * static_cast<std::uint64_t>(real.tiles_across)});
  const std::uint64_t samples = std::min<std::uint64_t>(real.samples, 2);
  small.options["batch"] = std::to_string(samples * static_cast<std::uint64_t>(request.mesh.dp));
  small.options["channels"] = std::to_string(std::min<std::uint64_t>(real.channels, 8));
  const int layers = std::min(real.layers, 4);
  small.options["layers"] = std::to_string(layers);
  // As many buckets as the real one has, at least two, at most one per layer.
  const std::uint64_t element =
      program::element_size(stack::types_of(request.precision).accumulate);
  const std::size_t buckets =
      stack::buckets_of(parameters_of(real), reader(request).bytes("bucket"), element).size();
  const auto wanted =
      std::clamp<std::uint64_t>(buckets, std::min(2, layers), static_cast<std::uint64_t>(layers));
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

mesh::Request square_grid(int ranks) {
  int across = static_cast<int>(std::sqrt(static_cast<double>(ranks)));
  while (ranks % across != 0) --across;
  // dp is named: it would absorb what a grid leaves.
  return {{mesh::Axis::tp, across}, {mesh::Axis::cp, ranks / across}, {mesh::Axis::dp, 1}};
}

}  // namespace isoscale::workloads::tiles
