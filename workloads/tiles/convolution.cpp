// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/tiles/convolution.hpp"

#include "workloads/stack/buffers.hpp"

namespace isoscale::workloads::tiles {

using program::BufferId;
using program::Gemm;
using program::Matrix;
using program::Slice;
using program::Transpose;

namespace {

constexpr program::StreamId compute = 0;

std::uint32_t narrow(std::uint64_t number) { return static_cast<std::uint32_t>(number); }

}  // namespace

void Convolution::forward(const Region& region, BufferId in, const Slice& kernel,
                          BufferId out) const {
  convolve(region, in, kernel, out, Adjoint::no);
}

void Convolution::backward(BufferId d_out, const Slice& kernel, BufferId d_in) const {
  convolve(g_.all(), d_out, kernel, d_in, Adjoint::yes);
}

void Convolution::convolve(const Region& region, BufferId in, const Slice& kernel, BufferId out,
                           Adjoint adjoint) const {
  const std::uint64_t row = region.row + g_.halo, column = region.column + g_.halo;
  // The pixels themselves are the first addend: the residual.
  if (!types_.has_master()) {
    return add_taps(region, in, kernel, adjoint,
                    {pixels(in, region, row, column), pixels(out, region, row, column)});
  }
  // Narrow types would round once a tap: the sum is wide, and rounded once.
  const std::uint64_t line = region.columns * g_.pixel();
  const BufferId wide = builder_.allocate(
      {.dtype = types_.accumulate, .role = program::Role::workspace, .count = region.rows * line});
  const Slice whole{.buffer = wide, .count = region.rows * line};
  const auto cast = [&](const Matrix& from, const Matrix& to) {
    builder_.emit(
        compute, program::Cast{
                     .rows = narrow(region.rows), .columns = narrow(line), .src = from, .dst = to});
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
  builder_.release(wide);
}

void Convolution::add_taps(const Region& region, BufferId in, const Slice& kernel, Adjoint adjoint,
                           const Sum& sum) const {
  const std::uint64_t square = g_.channels * g_.channels;
  for (std::uint64_t tap = 0; tap < g_.taps(); ++tap) {
    // Tap (i, j) meets the pixel i - halo rows and j - halo columns away; its adjoint the opposite.
    const std::uint64_t from = adjoint == Adjoint::yes ? g_.taps() - 1 - tap : tap;
    const std::uint64_t i = from / g_.kernel, j = from % g_.kernel;
    builder_.emit(compute,
                  Gemm{.m = narrow(region.columns * g_.samples),
                       .n = narrow(g_.channels),
                       .k = narrow(g_.channels),
                       .batch = narrow(region.rows),
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
  const std::uint64_t rows = g_.span() / g_.channels;  // pixels of all samples
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
    // The taps of a row are a batch: their views of the input are a pixel apart.
    const Matrix result = stack::matrix(d_kernel, {.rows = g_.channels,
                                                   .columns = g_.channels,
                                                   .row_stride = g_.channels,
                                                   .offset = i * g_.kernel * square,
                                                   .batch = g_.kernel,
                                                   .batch_stride = square});
    builder_.emit(compute, Gemm{.m = narrow(g_.channels),
                                .n = narrow(g_.channels),
                                .k = narrow(rows),
                                .batch = narrow(g_.kernel),
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
  const std::uint64_t gap = 2 * g_.halo * g_.pixel();  // after one row's last pixel
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

}  // namespace isoscale::workloads::tiles
