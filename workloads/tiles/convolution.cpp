// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/tiles/image_tiles.hpp"

#include <fmt/format.h>

namespace isoscale::workloads::tiles {

namespace {

using program::BufferId;
using program::Gemm;
using program::Matrix;
using program::Role;
using program::Slice;
using program::Transpose;

constexpr program::StreamId compute = 0;

/// All axes along which a mesh of tiles may have several ranks.
constexpr mesh::AxisSet everyone{mesh::Axis::tp, mesh::Axis::cp, mesh::Axis::dp};

/// Returns the op that updates weights, without the slices that it reads and writes.
program::Update update_of(const Geometry& g, const Request& request) {
  program::Update update{.optimizer = values_of(request).optimizer};
  if (request.keep == Keep::observables) {
    update = stack::verified_update(update.optimizer, g.layers);
  }
  update.gradient_scale =
      1.0 / (static_cast<double>(g.whole.rows) * static_cast<double>(g.whole.columns) *
             static_cast<double>(g.whole_samples));
  return update;
}

}  // namespace

void Convolution::convolve(const Region& region, BufferId in, const Slice& kernel, BufferId out,
                           Adjoint adjoint) const {
  const std::uint64_t row = region.row + g_.halo, column = region.column + g_.halo;
  // The sum begins with the input pixels, which are the residual.
  if (!types_.has_master()) {
    return add_taps(region, in, kernel, adjoint,
                    {pixels(in, region, row, column), pixels(out, region, row, column)});
  }
  // A sum in a narrow type would be rounded once for each tap. So the sum is in a wide type, and is
  // rounded once.
  const std::uint64_t line = region.columns * g_.pixel();
  const BufferId wide = builder_.temporary(
      {.dtype = types_.accumulate, .role = program::Role::workspace, .count = region.rows * line});
  const Slice whole{.buffer = wide, .count = region.rows * line};
  const auto cast = [&](const Matrix& from, const Matrix& to) {
    builder_.emit(compute, program::Cast{.rows = stack::extent(region.rows),
                                         .columns = stack::extent(line),
                                         .src = from,
                                         .dst = to});
  };
  const auto lines = [&](BufferId tile) {
    return stack::matrix(builder_.whole(tile), {.rows = region.rows,
                                                .columns = line,
                                                .row_stride = g_.line(),
                                                .offset = g_.place(row, column)});
  };
  const Matrix sum = stack::matrix(whole, {.rows = region.columns * g_.samples,
                                           .columns = g_.channels,
                                           .row_stride = g_.channels,
                                           .batch = region.rows,
                                           .batch_stride = line});
  cast(lines(in), stack::dense(whole, region.rows, line));
  add_taps(region, in, kernel, adjoint, {sum, sum});
  cast(stack::dense(whole, region.rows, line), lines(out));
}

void Convolution::add_taps(const Region& region, BufferId in, const Slice& kernel, Adjoint adjoint,
                           const Sum& sum) const {
  const std::uint64_t square = g_.channels * g_.channels;
  for (std::uint64_t tap = 0; tap < g_.taps(); ++tap) {
    // Tap (i, j) reads the pixel that is i - halo rows and j - halo columns away; the adjoint reads
    // the pixel in the opposite direction.
    const std::uint64_t from = adjoint == Adjoint::yes ? g_.taps() - 1 - tap : tap;
    const std::uint64_t i = from / g_.kernel, j = from % g_.kernel;
    builder_.emit(compute,
                  Gemm{.m = stack::extent(region.columns * g_.samples),
                       .n = stack::extent(g_.channels),
                       .k = stack::extent(g_.channels),
                       .batch = stack::extent(region.rows),
                       .transpose_b = adjoint == Adjoint::yes ? Transpose::yes : Transpose::no,
                       .mode = types_.mode,
                       .alpha = g_.residual_gain,
                       .beta = 1,
                       .a = pixels(in, region, region.row + i, region.column + j),
                       .b = stack::matrix(kernel, {.rows = g_.channels,
                                                   .columns = g_.channels,
                                                   .row_stride = g_.channels,
                                                   .offset = tap * square}),
                       .c = tap == 0 ? sum.first_addend : sum.result,
                       .d = sum.result});
  }
}

void Convolution::kernel_gradient(BufferId in, BufferId d_out, const Slice& d_kernel) const {
  const std::uint64_t square = g_.channels * g_.channels;
  const std::uint64_t rows = g_.span() / g_.channels;  // pixels of all samples, with halo columns
  const auto flat = [&](BufferId tile, std::uint64_t row, std::uint64_t column,
                        std::uint64_t times) {
    return stack::matrix(builder_.whole(tile), {.rows = rows,
                                                .columns = g_.channels,
                                                .row_stride = g_.channels,
                                                .offset = g_.place(row, column),
                                                .batch = times,
                                                .batch_stride = times > 1 ? g_.pixel() : 0});
  };
  for (std::uint64_t i = 0; i < g_.kernel; ++i) {
    // The taps in a row are one batch, since their views of the input are one pixel apart.
    const Matrix result = stack::matrix(d_kernel, {.rows = g_.channels,
                                                   .columns = g_.channels,
                                                   .row_stride = g_.channels,
                                                   .offset = i * g_.kernel * square,
                                                   .batch = g_.kernel,
                                                   .batch_stride = square});
    builder_.emit(compute, Gemm{.m = stack::extent(g_.channels),
                                .n = stack::extent(g_.channels),
                                .k = stack::extent(rows),
                                .batch = stack::extent(g_.kernel),
                                .transpose_a = Transpose::yes,
                                .mode = types_.mode,
                                .alpha = g_.residual_gain,
                                .a = flat(in, i, 0, g_.kernel),
                                .b = flat(d_out, g_.halo, g_.halo, 1),
                                .d = result});
  }
}

std::vector<Region> Convolution::around(const Region& inside) const {
  const std::uint64_t below = inside.row + inside.rows, right = inside.column + inside.columns;
  std::vector<Region> bands{
      {0, 0, inside.row, g_.tile.columns},
      {below, 0, g_.tile.rows - below, g_.tile.columns},
      {inside.row, 0, inside.rows, inside.column},
      {inside.row, right, inside.rows, g_.tile.columns - right},
  };
  std::erase_if(bands, [](const Region& band) { return band.empty(); });
  return bands;
}

void Convolution::clear_columns(BufferId tile) const {
  if (!g_.has_columns() || g_.tile.rows < 2) return;
  const std::uint64_t gap = 2 * g_.halo * g_.pixel();  // halo elements between two rows of pixels
  const std::uint64_t gaps = g_.tile.rows - 1;
  builder_.emit(compute,
                program::Fill{.dst = {.buffer = tile,
                                      .offset = g_.place(g_.halo, g_.halo + g_.tile.columns),
                                      .count = (gaps - 1) * g_.line() + gap},
                              .shard = {.extents = {1, gaps, gap}, .local = {0, g_.line(), 1}},
                              .source = program::FillSource::constant,
                              .value = 0});
}

Matrix Convolution::pixels(BufferId tile, const Region& region, std::uint64_t row,
                           std::uint64_t column) const {
  return stack::matrix(builder_.whole(tile), {.rows = region.columns * g_.samples,
                                              .columns = g_.channels,
                                              .row_stride = g_.channels,
                                              .offset = g_.place(row, column),
                                              .batch = region.rows,
                                              .batch_stride = g_.line()});
}

std::vector<stack::Parameter> parameters_of(const Geometry& geometry) {
  const std::uint64_t rows = geometry.taps() * geometry.channels, columns = geometry.channels;
  std::vector<stack::Parameter> result;
  for (int layer = geometry.layers; layer-- > 0;) {
    result.push_back({.name = fmt::format("layer{}.kernel", layer),
                      .rows = rows,
                      .columns = columns,
                      .offset = result.size() * rows * columns,
                      .shard = {.extents = {1, rows, columns},
                                .local = {0, columns, 1},
                                .global = {0, columns, 1},
                                .base = 0,
                                .steps = {}},
                      .fan_in = rows});
  }
  return result;
}

Kernels::Kernels(program::Builder& builder, const Geometry& geometry, const Request& request)
    : builder_(builder),
      parameters_(parameters_of(geometry)),
      reduces_(request.mesh.size() > 1),
      update_(update_of(geometry, request)) {
  const Values options = values_of(request);
  const stack::Types types = stack::types_of(request.precision);
  overlaps_ = options.overlap;
  if (reduces_ && overlaps_) stream_ = builder.stream("gradients");
  buckets_ =
      stack::buckets_of(parameters_, options.bucket, program::element_size(types.accumulate));
  const std::uint64_t count = parameters_.back().offset + parameters_.back().count();
  const auto flat = [&](program::DType type, Role role, std::uint64_t elements) {
    return builder_.allocate({.dtype = type, .role = role, .count = elements});
  };
  states_.weights = flat(types.compute, Role::weight, count);
  states_.gradients = flat(types.accumulate, Role::gradient, count);
  if (types.has_master()) states_.masters = flat(types.accumulate, Role::master, count);
  builder_.at({.phase = program::Phase::setup});
  for (const stack::Parameter& entry : parameters_) {
    for (const BufferId buffer : {states_.weights, states_.masters}) {
      if (buffer == program::no_buffer) continue;
      builder_.emit(0, stack::weight_fill(stack::flat(buffer, entry.offset, entry.count()), entry,
                                          request.seed));
    }
  }
  if (update_.optimizer != program::Optimizer::adam) return;
  for (BufferId* const moment : {&states_.moment1, &states_.moment2}) {
    *moment = flat(types.accumulate, Role::optimizer, count);
    stack::fill_flat(builder_, builder_.whole(*moment), 0);
  }
  states_.powers = flat(types.accumulate, Role::optimizer, 2 * buckets_.size());
  stack::fill_flat(builder_, builder_.whole(states_.powers), 1);
}

void Kernels::done(int layer) {
  if (!reduces_ || !overlaps_) return;
  for (const stack::Bucket& bucket : buckets_) {
    if (parameters_[bucket.last].offset == of(layer).offset) reduce(bucket);
  }
}

void Kernels::reduce(const stack::Bucket& bucket) {
  const program::Place place = builder_.place();
  builder_.at({.phase = program::Phase::gradient_reduction, .layer = place.layer});
  const Slice sum = stack::flat(states_.gradients, bucket.offset, bucket.count);
  stack::communicate(builder_, stream_, program::CollectiveKind::all_reduce, everyone, sum, sum);
  builder_.at(place);
}

void Kernels::finish() {
  builder_.at({.phase = program::Phase::optimizer});
  if (reduces_ && !overlaps_) {
    for (const stack::Bucket& bucket : buckets_) reduce(bucket);
  }
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const auto slice = [&](BufferId buffer) {
      return stack::flat(buffer, buckets_[i].offset, buckets_[i].count);
    };
    program::Update update = update_;
    update.weight = slice(states_.weights);
    update.master = slice(states_.masters);
    update.gradient = slice(states_.gradients);
    update.moment1 = slice(states_.moment1);
    update.moment2 = slice(states_.moment2);
    update.powers = stack::flat(states_.powers, 2 * i, 2);
    builder_.emit(0, update);
  }
}

void Kernels::observe() const {
  for (const stack::Parameter& entry : parameters_) {
    const BufferId weights =
        states_.masters == program::no_buffer ? states_.weights : states_.masters;
    builder_.observe(entry.name + ".gradient",
                     stack::flat(states_.gradients, entry.offset, entry.count()), entry.shard);
    builder_.observe(entry.name + ".weight", stack::flat(weights, entry.offset, entry.count()),
                     entry.shard);
  }
}

}  // namespace isoscale::workloads::tiles
