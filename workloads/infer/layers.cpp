// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/infer/layers.hpp"

#include <algorithm>
#include <cmath>

#include "workloads/stack/buffers.hpp"

namespace isoscale::workloads::infer {

using program::BufferId;
using program::Gemm;
using program::Matrix;
using program::Transpose;
using stack::dense;
using stack::Tensor;

namespace {

/// Of scores that are kept at once: a long prompt's are a square, and are used at once.
constexpr std::uint64_t most_score_bytes = std::uint64_t{256} << 20U;

std::uint32_t extent(std::uint64_t value) { return static_cast<std::uint32_t>(value); }

}  // namespace

BufferId Layers::new_buffer(std::uint64_t count) {
  return builder_.allocate(
      {.dtype = types_.compute, .role = program::Role::workspace, .count = count});
}

BufferId Layers::forward(const Pass& pass, const Matrix& input) {
  const program::Place place = builder_.place();
  BufferId activation = program::no_buffer;
  Matrix x = input;
  for (int layer = 0; layer < g_.layers; ++layer) {
    builder_.at({.phase = program::Phase::forward,
                 .layer = g_.global_layer(layer),
                 .microbatch = place.microbatch});
    const std::uint64_t rows = pass.rows();
    const BufferId context = attention(layer, pass, x);
    const BufferId middle = multiply_into(x, dense(builder_.whole(context), rows, g_.context),
                                          weights_.of(layer, Tensor::projection), rows, g_.context);
    builder_.release(context);
    if (activation != program::no_buffer) builder_.release(activation);
    const BufferId mlp = inner(layer, pass, middle);
    activation = multiply_into(dense(builder_.whole(middle), rows, g_.hidden),
                               dense(builder_.whole(mlp), rows, g_.ffn),
                               weights_.of(layer, Tensor::down), rows, g_.ffn);
    builder_.release(mlp);
    builder_.release(middle);
    x = dense(builder_.whole(activation), rows, g_.hidden);
  }
  builder_.at(place);
  return activation;
}

BufferId Layers::logits(const Matrix& input, std::uint64_t rows) {
  return multiply(input, weights_.vocabulary(), rows, g_.hidden, g_.vocabulary);
}

BufferId Layers::attention(int layer, const Pass& pass, const Matrix& input) {
  const BufferId qkv =
      multiply(input, weights_.of(layer, Tensor::qkv), pass.rows(), g_.hidden, g_.qkv);
  remember(layer, pass, qkv);
  const BufferId context = new_buffer(pass.rows() * g_.context);
  const std::uint64_t step = samples_at_once(pass);
  for (std::uint64_t sample = 0; sample < pass.samples; sample += step) {
    attend(layer, pass, sample, std::min(step, pass.samples - sample), qkv, context);
  }
  builder_.release(qkv);
  return context;
}

std::uint64_t Layers::samples_at_once(const Pass& pass) const {
  const std::uint64_t of_sample = g_.kv_heads * g_.grouped * pass.positions * pass.length() *
                                  program::element_size(types_.compute);
  return std::clamp<std::uint64_t>(most_score_bytes / of_sample, 1, pass.samples);
}

void Layers::remember(int layer, const Pass& pass, BufferId qkv) {
  const Cache::Place place = cache_.place(builder_, layer, pass);
  const std::uint64_t heads = pass.samples * g_.kv_heads;
  const std::uint64_t head_columns = (g_.grouped + 2) * g_.head_size;
  const bool is_single = pass.positions == 1;
  const auto copy = [&](std::uint64_t block, const Matrix& target) {
    const Matrix source =
        is_single ? stack::matrix(builder_.whole(qkv), {.rows = heads,
                                                        .columns = g_.head_size,
                                                        .row_stride = head_columns,
                                                        .offset = block * g_.head_size})
                  : stack::matrix(builder_.whole(qkv), {.rows = pass.positions,
                                                        .columns = g_.head_size,
                                                        .row_stride = pass.samples * g_.qkv,
                                                        .offset = block * g_.head_size,
                                                        .batch = heads,
                                                        .batch_stride = head_columns});
    builder_.emit(0, program::Copy{.rows = extent(is_single ? heads : pass.positions),
                                   .columns = extent(g_.head_size),
                                   .batch = extent(is_single ? 1 : heads),
                                   .src = source,
                                   .dst = target});
  };
  copy(g_.grouped, place.keys);
  copy(g_.grouped + 1, place.values);
}

void Layers::attend(int layer, const Pass& pass, std::uint64_t sample, std::uint64_t samples,
                    BufferId qkv, BufferId context) {
  const std::uint64_t heads = samples * g_.kv_heads, length = pass.length();
  const std::uint64_t square = pass.positions * length;
  // With one position a head's queries are rows that follow each other: one product for all of
  // them. Else the j-th query of every key-value head makes a product of its own.
  const bool is_single = pass.positions == 1;
  const std::uint64_t products = is_single ? 1 : g_.grouped;
  const std::uint64_t rows = is_single ? g_.grouped : pass.positions;
  const BufferId scores = new_buffer(heads * g_.grouped * square);
  for (std::uint64_t j = 0; j < products; ++j) {
    const Matrix query = stack::matrix(
        builder_.whole(qkv), {.rows = rows,
                              .columns = g_.head_size,
                              .row_stride = is_single ? g_.head_size : pass.samples * g_.qkv,
                              .offset = sample * g_.qkv + j * g_.head_size,
                              .batch = heads,
                              .batch_stride = (g_.grouped + 2) * g_.head_size});
    const Matrix score =
        stack::matrix(builder_.whole(scores), {.rows = rows,
                                               .columns = length,
                                               .row_stride = length,
                                               .offset = j * square,
                                               .batch = heads,
                                               .batch_stride = g_.grouped * square});
    const Matrix out =
        stack::matrix(builder_.whole(context),
                      {.rows = rows,
                       .columns = g_.head_size,
                       .row_stride = is_single ? g_.head_size : pass.samples * g_.context,
                       .offset = sample * g_.context + j * g_.head_size,
                       .batch = heads,
                       .batch_stride = g_.grouped * g_.head_size});
    Gemm gemm{.m = extent(rows), .n = extent(length), .k = extent(g_.head_size)};
    gemm.batch = extent(heads);
    gemm.mode = types_.mode;
    gemm.transpose_b = Transpose::yes;
    gemm.alpha = 1 / std::sqrt(static_cast<double>(g_.head_size));
    gemm.a = query;
    gemm.b = cache_.keys(builder_, layer, pass, sample, samples);
    gemm.d = score;
    builder_.emit(0, gemm);
    std::swap(gemm.n, gemm.k);
    gemm.transpose_b = Transpose::no;
    gemm.alpha = 1 / std::sqrt(static_cast<double>(length));
    gemm.a = score;
    gemm.b = cache_.values(builder_, layer, pass, sample, samples);
    gemm.d = out;
    builder_.emit(0, gemm);
  }
  builder_.release(scores);
}

BufferId Layers::inner(int layer, const Pass& pass, BufferId middle) {
  const std::uint64_t rows = pass.rows(), columns = g_.up_parts * g_.ffn;
  const BufferId up = multiply(dense(builder_.whole(middle), rows, g_.hidden),
                               weights_.of(layer, Tensor::up), rows, g_.hidden, columns);
  if (g_.up_parts == 1) return up;
  // gate + up stands in for the gated product, as in training.
  const BufferId result = new_buffer(rows * g_.ffn);
  const auto part = [&](std::uint64_t p) {
    return stack::matrix(
        builder_.whole(up),
        {.rows = rows, .columns = g_.ffn, .row_stride = columns, .offset = p * g_.ffn});
  };
  builder_.emit(0, program::Add{.rows = extent(rows),
                                .columns = extent(g_.ffn),
                                .a = part(0),
                                .b = part(1),
                                .dst = dense(builder_.whole(result), rows, g_.ffn)});
  builder_.release(up);
  return result;
}

BufferId Layers::multiply(const Matrix& x, const program::Slice& weight, std::uint64_t rows,
                          std::uint64_t inputs, std::uint64_t outputs) {
  const BufferId out = new_buffer(rows * outputs);
  builder_.emit(0, Gemm{.m = extent(rows),
                        .n = extent(outputs),
                        .k = extent(inputs),
                        .mode = types_.mode,
                        .a = x,
                        .b = dense(weight, inputs, outputs),
                        .d = dense(builder_.whole(out), rows, outputs)});
  return out;
}

BufferId Layers::multiply_into(const Matrix& residual, const Matrix& x,
                               const program::Slice& weight, std::uint64_t rows,
                               std::uint64_t inputs) {
  const BufferId out = new_buffer(rows * g_.hidden);
  builder_.emit(0, Gemm{.m = extent(rows),
                        .n = extent(g_.hidden),
                        .k = extent(inputs),
                        .mode = types_.mode,
                        .alpha = g_.residual_gain,
                        .beta = 1.0 / g_.tp,
                        .a = x,
                        .b = dense(weight, inputs, g_.hidden),
                        .c = residual,
                        .d = dense(builder_.whole(out), rows, g_.hidden)});
  if (g_.tp > 1) {
    builder_.emit(0, program::Collective{.kind = program::CollectiveKind::all_reduce,
                                         .axes = mesh::Axis::tp,
                                         .send = builder_.whole(out),
                                         .receive = builder_.whole(out)});
  }
  return out;
}

}  // namespace isoscale::workloads::infer
