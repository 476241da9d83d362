// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "workloads/infer/replica.hpp"

namespace isoscale::workloads::infer {

namespace {

using program::BufferId;
using program::Gemm;
using program::Matrix;
using program::Transpose;
using stack::extent;
using stack::Tensor;

/// The most bytes of attention scores that exist at the same time, unless a single sample has more.
/// The limit is needed because the scores of a prompt grow with the square of its length.
constexpr std::uint64_t most_score_bytes = std::uint64_t{256} << 20U;

/// Returns a batch of `heads` matrices, one for each head. Their rows are the positions of a pass.
/// In `layout`, batch_stride is the distance between heads, and row_stride the distance between
/// positions. If the pass has one position, all heads are rows of one matrix instead.
Matrix rows_of_heads(const program::Slice& in, const Pass& pass, std::uint64_t heads,
                     stack::Layout layout) {
  const bool is_single = pass.positions == 1;
  layout.rows = is_single ? heads : pass.positions;
  if (is_single) layout.row_stride = std::exchange(layout.batch_stride, 0);
  if (!is_single) layout.batch = heads;
  return stack::matrix(in, layout);
}

}  // namespace

Weights::Weights(program::Builder& builder, const stack::Geometry& geometry, const Request& request)
    : parameters_(stack::parameters_of(geometry)) {
  const std::uint64_t count = parameters_.back().offset + parameters_.back().count();
  buffer_ = builder.allocate({.dtype = stack::types_of(request.precision).compute,
                              .role = program::Role::weight,
                              .count = count});
  builder.at({.phase = program::Phase::setup});
  for (const stack::Parameter& entry : parameters_) {
    builder.emit(0, stack::weight_fill(slice(entry), entry, request.seed));
  }
}

program::Slice Weights::of(int layer_of_stage, stack::Tensor tensor) const {
  // The list `parameters_` begins with the last layer and ends with the first one.
  const std::size_t from_end =
      (static_cast<std::size_t>(layer_of_stage) + 1) * stack::layer_tensors.size();
  return slice(parameters_[parameters_.size() - from_end + static_cast<std::size_t>(tensor)]);
}

Cache::Cache(program::Builder& builder, const stack::Geometry& geometry, const Request& request,
             std::uint64_t samples, std::uint64_t positions)
    : g_(geometry), samples_(samples), positions_(whole_blocks(positions)) {
  const std::uint64_t count = static_cast<std::uint64_t>(g_.layers) * layer_size();
  const auto take = [&] {
    return builder.allocate({.dtype = stack::types_of(request.precision).compute,
                             .role = program::Role::activation,
                             .count = count});
  };
  keys_ = take();
  values_ = take();
  builder.at({.phase = program::Phase::setup});
  each_part([&](const std::string& name, const program::Slice& part) {
    builder.emit(0, stack::random_fill(part, shard(), stack::fill_key(request.seed, name), 1));
  });
}

void Cache::each_part(
    const std::function<void(const std::string&, const program::Slice&)>& visit) const {
  for (int layer = 0; layer < g_.layers; ++layer) {
    for (const auto& [buffer, what] : {std::pair{keys_, "keys"}, std::pair{values_, "values"}}) {
      visit(fmt::format("layer{}.{}", g_.global_layer(layer), what),
            {.buffer = buffer,
             .offset = static_cast<std::uint64_t>(layer) * layer_size(),
             .count = layer_size()});
    }
  }
}

program::Shard Cache::shard() const {
  const std::uint64_t sample = g_.kv_heads * head();
  const std::uint64_t whole = sample * static_cast<std::uint64_t>(g_.tp);
  return {.extents = {samples_, g_.kv_heads, head()},
          .local = {sample, head(), 1},
          .global = {whole, head(), 1},
          .base = 0,
          .steps = {.tp = sample, .dp = samples_ * whole}};
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

Matrix Cache::place(const program::Builder& builder, Part part, int layer, const Pass& pass) const {
  const std::uint64_t heads = pass.samples * g_.kv_heads;
  const std::uint64_t offset = static_cast<std::uint64_t>(layer) * layer_size() +
                               pass.first_sample * g_.kv_heads * head() +
                               pass.position * g_.head_size;
  return rows_of_heads(builder.whole(part == Part::keys ? keys_ : values_), pass, heads,
                       {.columns = g_.head_size,
                        .row_stride = g_.head_size,
                        .offset = offset,
                        .batch_stride = head()});
}

void Cache::observe(program::Builder& builder) const {
  each_part([&](const std::string& name, const program::Slice& part) {
    builder.observe(name, part, shard());
  });
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
    const BufferId mlp = inner(layer, pass, middle);
    activation = multiply_into(dense(middle, rows, g_.hidden), dense(mlp, rows, g_.ffn),
                               weights_.of(layer, Tensor::down), rows, g_.ffn);
    x = dense(activation, rows, g_.hidden);
  }
  builder_.at(place);
  return activation;
}

BufferId Layers::attention(int layer, const Pass& pass, const Matrix& input) {
  const BufferId qkv =
      multiply({.weight = weights_.of(layer, Tensor::qkv), .inputs = g_.hidden, .outputs = g_.qkv},
               input, pass.rows());
  remember(layer, pass, qkv);
  const BufferId context = new_buffer(pass.rows() * g_.context);
  const std::uint64_t of_sample = g_.kv_heads * g_.grouped * pass.positions * pass.length() *
                                  program::element_size(types_.compute);
  const std::uint64_t step =
      std::clamp<std::uint64_t>(most_score_bytes / of_sample, 1, pass.samples);
  for (std::uint64_t sample = 0; sample < pass.samples; sample += step) {
    attend(layer, pass, sample, std::min(step, pass.samples - sample), qkv, context);
  }
  return context;
}

void Layers::remember(int layer, const Pass& pass, BufferId qkv) {
  const std::uint64_t heads = pass.samples * g_.kv_heads;
  const bool is_single = pass.positions == 1;
  const auto copy = [&](std::uint64_t block, Cache::Part part) {
    const Matrix source = rows_of_heads(builder_.whole(qkv), pass, heads,
                                        {.columns = g_.head_size,
                                         .row_stride = pass.samples * g_.qkv,
                                         .offset = block * g_.head_size,
                                         .batch_stride = (g_.grouped + 2) * g_.head_size});
    stack::copy(builder_, 0, is_single ? heads : pass.positions, g_.head_size, source,
                cache_.place(builder_, part, layer, pass), is_single ? 1 : heads);
  };
  copy(g_.grouped, Cache::Part::keys);
  copy(g_.grouped + 1, Cache::Part::values);
}

void Layers::attend(int layer, const Pass& pass, std::uint64_t sample, std::uint64_t samples,
                    BufferId qkv, BufferId context) {
  const std::uint64_t heads = samples * g_.kv_heads, length = pass.length();
  const std::uint64_t square = pass.positions * length;
  // With one position, the query heads that share a key-value head are consecutive rows, so one
  // product covers them. With several positions, there is one product for each j, which covers the
  // j-th query heads of all key-value heads.
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
}

BufferId Layers::inner(int layer, const Pass& pass, BufferId middle) {
  const std::uint64_t rows = pass.rows(), columns = g_.up_parts * g_.ffn;
  const BufferId up =
      multiply({.weight = weights_.of(layer, Tensor::up), .inputs = g_.hidden, .outputs = columns},
               dense(middle, rows, g_.hidden), rows);
  if (g_.up_parts == 1) return up;
  // A real model multiplies gate and up. Adding them, as in training, moves the same bytes.
  const BufferId result = new_buffer(rows * g_.ffn);
  add_gate(rows, up, result);
  return result;
}

BufferId Layers::multiply(const stack::Linear& linear, const Matrix& x, std::uint64_t rows,
                          const stack::Addend& addend) {
  const BufferId out = new_buffer(rows * linear.outputs);
  builder_.emit(0,
                linear_.forward_product(linear, rows, x, dense(out, rows, linear.outputs), addend));
  return out;
}

BufferId Layers::multiply_into(const Matrix& residual, const Matrix& x,
                               const program::Slice& weight, std::uint64_t rows,
                               std::uint64_t inputs) {
  const BufferId out =
      multiply({.weight = weight, .inputs = inputs, .outputs = g_.hidden, .gain = g_.residual_gain},
               x, rows, {.beta = 1.0 / g_.tp, .c = residual});
  if (g_.tp > 1) {
    stack::communicate(builder_, 0, program::CollectiveKind::all_reduce, mesh::Axis::tp,
                       builder_.whole(out), builder_.whole(out));
  }
  return out;
}

}  // namespace isoscale::workloads::infer
