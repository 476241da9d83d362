// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.hpp"
#include "workloads/infer/replica.hpp"
#include "workloads/stack/buffers.hpp"

namespace isoscale::workloads::infer {

namespace {

using program::BufferId;
using program::Gemm;
using program::Matrix;
using program::Transpose;
using stack::extent;
using stack::Tensor;

std::string_view suffix(stack::Tensor tensor) {
  switch (tensor) {
    case stack::Tensor::qkv:
      return ".qkv";
    case stack::Tensor::projection:
      return ".projection";
    case stack::Tensor::up:
      return ".up";
    case stack::Tensor::down:
      break;
  }
  return ".down";
}

/// The most bytes of scores that exist at the same time, since the scores of a long prompt grow
/// with the square of its length.
constexpr std::uint64_t most_score_bytes = std::uint64_t{256} << 20U;

}  // namespace

Weights::Weights(program::Builder& builder, const stack::Geometry& geometry, const Request& request)
    : parameters_(stack::parameters_of(geometry)), first_layer_(geometry.global_layer(0)) {
  const std::uint64_t count = parameters_.back().offset + parameters_.back().count();
  buffer_ = builder.allocate({.dtype = stack::types_of(request.precision).compute,
                              .role = program::Role::weight,
                              .count = count});
  builder.at({.phase = program::Phase::setup});
  for (const stack::Parameter& entry : parameters_) {
    builder.emit(0, stack::weight_fill(slice(entry), entry, request.seed));
  }
}

program::Slice Weights::slice(const stack::Parameter& entry) const {
  return {.buffer = buffer_, .offset = entry.offset, .count = entry.count()};
}

program::Slice Weights::named(const std::string& name) const {
  const auto found = std::ranges::find(parameters_, name, &stack::Parameter::name);
  if (found == parameters_.end()) throw base::Error("the stack has no parameter " + name);
  return slice(*found);
}

program::Slice Weights::of(int layer_of_stage, stack::Tensor tensor) const {
  return named("layer" + std::to_string(first_layer_ + layer_of_stage) +
               std::string{suffix(tensor)});
}

program::Slice Weights::vocabulary() const { return named("vocabulary"); }

Cache::Cache(program::Builder& builder, const stack::Geometry& geometry, const Request& request,
             std::uint64_t samples, std::uint64_t positions)
    : g_(geometry), samples_(samples), positions_(positions) {
  const std::uint64_t count = static_cast<std::uint64_t>(g_.layers) * layer_size();
  const auto take = [&] {
    return builder.allocate({.dtype = stack::types_of(request.precision).compute,
                             .role = program::Role::activation,
                             .count = count});
  };
  keys_ = take();
  values_ = take();
  builder.at({.phase = program::Phase::setup});
  for (int layer = 0; layer < g_.layers; ++layer) {
    const auto fill = [&](BufferId buffer, std::string_view what) {
      const std::string name = fmt::format("layer{}.{}", g_.global_layer(layer), what);
      const std::uint64_t offset = static_cast<std::uint64_t>(layer) * layer_size();
      builder.emit(0,
                   stack::random_fill({.buffer = buffer, .offset = offset, .count = layer_size()},
                                      shard(), stack::fill_key(request.seed, name), 1));
    };
    fill(keys_, "keys");
    fill(values_, "values");
  }
}

program::Shard Cache::shard() const {
  const std::uint64_t sample = g_.kv_heads * head();
  const std::uint64_t whole = sample * static_cast<std::uint64_t>(g_.tp);
  program::Shard result{.extents = {samples_, g_.kv_heads, head()},
                        .local = {sample, head(), 1},
                        .global = {whole, head(), 1},
                        .base = 0,
                        .steps = {}};
  result.steps[static_cast<std::size_t>(mesh::Axis::tp)] = sample;
  result.steps[static_cast<std::size_t>(mesh::Axis::dp)] = samples_ * whole;
  return result;
}

Matrix Cache::view(const program::Builder& builder, Part part, int layer, const Pass& pass,
                   std::uint64_t sample, std::uint64_t samples) const {
  const program::Slice in = builder.whole(part == Part::keys ? keys_ : values_);
  const std::uint64_t first = (pass.first_sample + sample) * g_.kv_heads * head();
  return stack::matrix(in, {.rows = pass.length(),
                            .columns = g_.head_size,
                            .row_stride = g_.head_size,
                            .offset = static_cast<std::uint64_t>(layer) * layer_size() + first,
                            .batch = samples * g_.kv_heads,
                            .batch_stride = head()});
}

Cache::Place Cache::place(const program::Builder& builder, int layer, const Pass& pass) const {
  const std::uint64_t heads = pass.samples * g_.kv_heads;
  const std::uint64_t offset = static_cast<std::uint64_t>(layer) * layer_size() +
                               pass.first_sample * g_.kv_heads * head() +
                               pass.position * g_.head_size;
  const auto of = [&](BufferId buffer) {
    // A pass with one position has one row for each head; a pass with several positions has a block
    // of rows for each head.
    return pass.positions == 1 ? stack::matrix(builder.whole(buffer), {.rows = heads,
                                                                       .columns = g_.head_size,
                                                                       .row_stride = head(),
                                                                       .offset = offset})
                               : stack::matrix(builder.whole(buffer), {.rows = pass.positions,
                                                                       .columns = g_.head_size,
                                                                       .row_stride = g_.head_size,
                                                                       .offset = offset,
                                                                       .batch = heads,
                                                                       .batch_stride = head()});
  };
  return {.keys = of(keys_), .values = of(values_)};
}

void Cache::observe(program::Builder& builder) const {
  for (int layer = 0; layer < g_.layers; ++layer) {
    const auto observe = [&](BufferId buffer, std::string_view what) {
      builder.observe(fmt::format("layer{}.{}", g_.global_layer(layer), what),
                      {.buffer = buffer,
                       .offset = static_cast<std::uint64_t>(layer) * layer_size(),
                       .count = layer_size()},
                      shard());
    };
    observe(keys_, "keys");
    observe(values_, "values");
  }
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
    const BufferId middle = multiply_into(x, dense(context, rows, g_.context),
                                          weights_.of(layer, Tensor::projection), rows, g_.context);
    builder_.release(context);
    if (activation != program::no_buffer) builder_.release(activation);
    const BufferId mlp = inner(layer, pass, middle);
    activation = multiply_into(dense(middle, rows, g_.hidden), dense(mlp, rows, g_.ffn),
                               weights_.of(layer, Tensor::down), rows, g_.ffn);
    builder_.release(mlp);
    builder_.release(middle);
    x = dense(activation, rows, g_.hidden);
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
    stack::copy(builder_, 0, is_single ? heads : pass.positions, g_.head_size, source, target,
                is_single ? 1 : heads);
  };
  copy(g_.grouped, place.keys);
  copy(g_.grouped + 1, place.values);
}

void Layers::attend(int layer, const Pass& pass, std::uint64_t sample, std::uint64_t samples,
                    BufferId qkv, BufferId context) {
  const std::uint64_t heads = samples * g_.kv_heads, length = pass.length();
  const std::uint64_t square = pass.positions * length;
  // With one position, the queries of all heads of a group are consecutive rows, so one product
  // covers them. With several, there is a product for the j-th query heads of all key-value heads,
  // for each j.
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
    gemm.b = cache_.view(builder_, Cache::Part::keys, layer, pass, sample, samples);
    gemm.d = score;
    builder_.emit(0, gemm);
    std::swap(gemm.n, gemm.k);
    gemm.transpose_b = Transpose::no;
    gemm.alpha = 1 / std::sqrt(static_cast<double>(length));
    gemm.a = score;
    gemm.b = cache_.view(builder_, Cache::Part::values, layer, pass, sample, samples);
    gemm.d = out;
    builder_.emit(0, gemm);
  }
  builder_.release(scores);
}

BufferId Layers::inner(int layer, const Pass& pass, BufferId middle) {
  const std::uint64_t rows = pass.rows(), columns = g_.up_parts * g_.ffn;
  const BufferId up = multiply(dense(middle, rows, g_.hidden), weights_.of(layer, Tensor::up), rows,
                               g_.hidden, columns);
  if (g_.up_parts == 1) return up;
  // As in training, the sum of gate and up replaces their gated product.
  const BufferId result = new_buffer(rows * g_.ffn);
  add_gate(rows, up, result);
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
                        .d = dense(out, rows, outputs)});
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
                        .d = dense(out, rows, g_.hidden)});
  if (g_.tp > 1) {
    stack::communicate(builder_, 0, program::CollectiveKind::all_reduce, mesh::Axis::tp,
                       builder_.whole(out), builder_.whole(out));
  }
  return out;
}

}  // namespace isoscale::workloads::infer
