// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "workloads/infer/layers.hpp"
#include "workloads/stack/buffers.hpp"

namespace isoscale::workloads::infer {

using program::BufferId;
using program::Matrix;

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

Matrix Cache::view(const program::Slice& in, int layer, const Pass& pass, std::uint64_t sample,
                   std::uint64_t samples) const {
  const std::uint64_t first = (pass.first_sample + sample) * g_.kv_heads * head();
  return stack::matrix(in, {.rows = pass.length(),
                            .columns = g_.head_size,
                            .row_stride = g_.head_size,
                            .offset = static_cast<std::uint64_t>(layer) * layer_size() + first,
                            .batch = samples * g_.kv_heads,
                            .batch_stride = head()});
}

Matrix Cache::keys(const program::Builder& builder, int layer, const Pass& pass,
                   std::uint64_t sample, std::uint64_t samples) const {
  return view(builder.whole(keys_), layer, pass, sample, samples);
}

Matrix Cache::values(const program::Builder& builder, int layer, const Pass& pass,
                     std::uint64_t sample, std::uint64_t samples) const {
  return view(builder.whole(values_), layer, pass, sample, samples);
}

Cache::Place Cache::place(const program::Builder& builder, int layer, const Pass& pass) const {
  const std::uint64_t heads = pass.samples * g_.kv_heads;
  const std::uint64_t offset = static_cast<std::uint64_t>(layer) * layer_size() +
                               pass.first_sample * g_.kv_heads * head() +
                               pass.position * g_.head_size;
  const auto of = [&](BufferId buffer) {
    // One new token: a row for each head. Several: a block of rows for each.
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

}  // namespace isoscale::workloads::infer
