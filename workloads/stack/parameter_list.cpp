// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "workloads/stack/training_state_buffers.hpp"

// This file lists the weight matrices of a rank and cuts them into buckets.
namespace isoscale::workloads::stack {
namespace {

/// Returns this rank's rows x columns of a global matrix whose rows are `global_columns` elements
/// apart. Along tp, each rank's part begins `step` global elements after the previous rank's part.
Parameter matrix(std::string name, std::uint64_t rows, std::uint64_t columns,
                 std::uint64_t global_columns, std::uint64_t step, std::uint64_t fan_in) {
  const Shard shard{.extents = {1, rows, columns},
                    .local = {0, columns, 1},
                    .global = {0, global_columns, 1},
                    .base = 0,
                    .steps = {.tp = step}};
  return {
      .name = std::move(name), .rows = rows, .columns = columns, .shard = shard, .fan_in = fan_in};
}

/// Returns the matrix of the second GEMM of a pair. It is split by rows or, if the GEMM's output is
/// gathered, by columns.
Parameter second(std::string name, const Geometry& g, std::uint64_t inner) {
  const auto tp = static_cast<std::uint64_t>(g.tp);
  if (g.options.tp_output == TpOutput::gather) {
    return matrix(std::move(name), inner * tp, g.hidden / tp, g.hidden, g.hidden / tp, inner * tp);
  }
  return matrix(std::move(name), inner, g.hidden, g.hidden, inner * g.hidden, inner * tp);
}

Parameter parameter(const Geometry& g, int layer, Tensor tensor, std::string_view of = {}) {
  const auto tp = static_cast<std::uint64_t>(g.tp);
  const auto named = [&](std::string_view what) {
    return fmt::format("layer{}.{}{}", g.global_layer(layer), of, what);
  };
  switch (tensor) {
    case Tensor::qkv:
      return matrix(named("qkv"), g.hidden, g.qkv, g.qkv * tp, g.qkv, g.hidden);
    case Tensor::projection:
      return second(named("projection"), g, g.context);
    case Tensor::up: {  // columns are [part][ffn]; each part is split over tp
      Parameter up = matrix(named("up"), g.hidden, g.up_parts * g.ffn, 0, g.ffn, g.hidden);
      const std::uint64_t whole = g.ffn * tp;
      up.shard.extents = {g.hidden, g.up_parts, g.ffn};
      up.shard.local = {g.up_parts * g.ffn, g.ffn, 1};
      up.shard.global = {g.up_parts * whole, whole, 1};
      return up;
    }
    case Tensor::down:
      break;
  }
  return second(named("down"), g, g.ffn);
}

/// Adds the matrices of a layer's experts on this rank: first the down matrices of all experts,
/// then their up matrices.
void add_experts(const Geometry& g, int layer, std::vector<Parameter>& result) {
  for (const Tensor tensor : {Tensor::down, Tensor::up}) {
    for (int e = 0; e < g.local_experts; ++e) {
      const int expert = g.at.ep * g.local_experts + e;
      result.push_back(parameter(g, layer, tensor, fmt::format("expert{}.", expert)));
      Parameter& added = result.back();
      added.of_expert = true;
      added.observed_in = fmt::format("layer{}.experts.{}", g.global_layer(layer),
                                      tensor == Tensor::down ? "down" : "up");
      added.observed_base =
          static_cast<std::uint64_t>(expert) * added.count() * static_cast<std::uint64_t>(g.tp);
    }
  }
}

}  // namespace

std::vector<Parameter> parameters_of(const Geometry& geometry) {
  std::vector<Parameter> result;
  if (geometry.vocabulary > 0) {
    const std::uint64_t columns = geometry.vocabulary;
    result.push_back(matrix("vocabulary", geometry.hidden, columns,
                            columns * static_cast<std::uint64_t>(geometry.tp), columns,
                            geometry.hidden));
  }
  for (int layer = geometry.layers; layer-- > 0;) {
    for (const Tensor tensor : layer_tensors) {
      const bool is_mlp = tensor == Tensor::down || tensor == Tensor::up;
      if (!is_mlp || geometry.local_experts == 0) {
        result.push_back(parameter(geometry, layer, tensor));
      }
    }
  }
  for (int layer = geometry.layers; layer-- > 0;) add_experts(geometry, layer, result);
  std::uint64_t offset = 0;
  for (Parameter& entry : result) {
    entry.offset = offset;
    offset += entry.count();
  }
  return result;
}

std::vector<Bucket> buckets_of(const std::vector<Parameter>& parameters, std::uint64_t bucket,
                               std::uint64_t element) {
  std::vector<Bucket> result;
  Bucket open{};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    open.count += parameters[i].count();
    open.last = i;
    open.of_expert = parameters[i].of_expert;
    const bool is_last =
        i + 1 == parameters.size() || parameters[i + 1].of_expert != open.of_expert;
    if (open.count * element >= bucket || is_last) {
      result.push_back(open);
      open = {.offset = open.offset + open.count, .count = 0, .last = i};
    }
  }
  return result;
}

void pad_buckets(std::vector<Parameter>& parameters, std::vector<Bucket>& buckets,
                 std::uint64_t parts) {
  std::uint64_t shift = 0;
  std::size_t next = 0;
  for (Bucket& bucket : buckets) {
    bucket.offset += shift;
    for (; next <= bucket.last; ++next) parameters[next].offset += shift;
    bucket.padding = (parts - bucket.count % parts) % parts;
    bucket.count += bucket.padding;
    shift += bucket.padding;
  }
}

}  // namespace isoscale::workloads::stack
