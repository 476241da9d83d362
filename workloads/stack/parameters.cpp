// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "workloads/options.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::workloads::stack {
namespace {

using program::Builder;
using program::DType;
using program::Role;
using program::Shard;
using program::Slice;

constexpr std::size_t tp_axis = static_cast<std::size_t>(mesh::Axis::tp);

constexpr double default_rate = 0.01, default_epsilon = 1e-8;
constexpr double verification_epsilon = 100;

/// A rate at which updates change the largest weights by some percent: far above the rounding of
/// f32 masters, and little enough for the second step not to magnify what the first rounded.
/// Gradients go with the residual gain, 0.5 / layers.
double verification_rate(const Model& model) { return std::min(0.5, 0.005 * model.layers); }

/// rows x columns here, out of a global matrix whose rows are `global_columns` apart; this rank's
/// part begins `step` global elements further per tp coordinate.
Parameter matrix(std::string name, std::uint64_t rows, std::uint64_t columns,
                 std::uint64_t global_columns, std::uint64_t step, std::uint64_t fan_in) {
  Shard shard{.extents = {1, rows, columns},
              .local = {0, columns, 1},
              .global = {0, global_columns, 1},
              .base = 0,
              .steps = {}};
  shard.steps[tp_axis] = step;
  return {
      .name = std::move(name), .rows = rows, .columns = columns, .shard = shard, .fan_in = fan_in};
}

/// Second GEMM of a pair: split by rows, or by columns when its output is gathered.
Parameter second(std::string name, const Geometry& g, std::uint64_t inner) {
  const auto tp = static_cast<std::uint64_t>(g.tp);
  if (g.tp_output == TpOutput::gather) {
    return matrix(std::move(name), inner * tp, g.hidden / tp, g.hidden, g.hidden / tp, inner * tp);
  }
  return matrix(std::move(name), inner, g.hidden, g.hidden, inner * g.hidden, inner * tp);
}

Parameter parameter(const Geometry& g, int layer, Tensor tensor) {
  const auto tp = static_cast<std::uint64_t>(g.tp);
  const auto named = [&](std::string_view what) {
    return fmt::format("layer{}.{}", g.first_layer + layer, what);
  };
  switch (tensor) {
    case Tensor::qkv:
      return matrix(named("qkv"), g.hidden, g.qkv, g.qkv * tp, g.qkv, g.hidden);
    case Tensor::projection:
      return second(named("projection"), g, g.context);
    case Tensor::up: {  // columns are [part][ffn], and a shard takes its range of each part
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

}  // namespace

std::uint64_t fill_key(std::uint64_t seed, std::string_view tensor) {
  std::uint64_t key = seed * 0x9E3779B97F4A7C15ULL + 0xCBF29CE484222325ULL;
  for (const char c : tensor)
    key = (key ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;  // FNV-1a
  return key;
}

int fill_exponent(double deviation) {
  return static_cast<int>(std::lround(std::log2(deviation / fill_deviation(0))));
}

double fill_deviation(int exponent) {
  // Integers uniform on -127 ... 127 have variance (255^2 - 1) / 12.
  return std::ldexp(std::sqrt((255.0 * 255.0 - 1.0) / 12.0), exponent);
}

std::vector<Parameter> parameters_of(const Geometry& geometry) {
  std::vector<Parameter> result;
  if (geometry.vocabulary > 0) {
    const std::uint64_t columns = geometry.vocabulary;
    result.push_back(matrix("vocabulary", geometry.hidden, columns,
                            columns * static_cast<std::uint64_t>(geometry.tp), columns,
                            geometry.hidden));
  }
  for (int layer = geometry.layers; layer-- > 0;) {
    for (const Tensor tensor : layer_tensors) result.push_back(parameter(geometry, layer, tensor));
  }
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
    if (open.count * element >= bucket || i + 1 == parameters.size()) {
      result.push_back(open);
      open = {.offset = open.offset + open.count, .count = 0, .last = i};
    }
  }
  return result;
}

Parameters::Parameters(Builder& builder, const Geometry& geometry, const Request& request)
    : has_vocabulary_(geometry.vocabulary > 0),
      epsilon_(default_epsilon),
      rate_(default_rate),
      parameters_(parameters_of(geometry)) {
  const OptionReader options{option_table(), request.options};
  const Types types = types_of(request.precision);
  optimizer_ = options.is("optimizer", "adam") ? program::Optimizer::adam : program::Optimizer::sgd;
  if (request.keep == Keep::observables) {
    // Adam's step is rate * m / (sqrt(v) + epsilon): with these, that of SGD but for some percent.
    const bool adam = optimizer_ == program::Optimizer::adam;
    epsilon_ = verification_epsilon;
    rate_ = verification_rate(request.model) * (adam ? verification_epsilon : 1.0);
  }
  buckets_ =
      buckets_of(parameters_, options.bytes("bucket"), program::element_size(types.accumulate));
  const std::uint64_t count = parameters_.back().offset + parameters_.back().count();
  const auto flat = [&](DType type, Role role, std::uint64_t elements) {
    return builder.allocate({.dtype = type, .role = role, .count = elements});
  };
  weights_ = flat(types.compute, Role::weight, count);
  gradients_ = flat(types.accumulate, Role::gradient, count);
  if (types.has_master()) masters_ = flat(types.accumulate, Role::master, count);
  if (optimizer_ == program::Optimizer::adam) {
    moment1_ = flat(types.accumulate, Role::optimizer, count);
    moment2_ = flat(types.accumulate, Role::optimizer, count);
    powers_ = flat(types.accumulate, Role::optimizer, 2 * buckets_.size());
  }
  fill(builder, request.seed);
}

void Parameters::fill(Builder& builder, std::uint64_t seed) const {
  builder.at({.phase = program::Phase::setup});
  for (const Parameter& entry : parameters_) {
    const std::uint64_t key = fill_key(seed, entry.name);
    const int exponent = fill_exponent(1.0 / std::sqrt(static_cast<double>(entry.fan_in)));
    for (const program::BufferId buffer : {weights_, masters_}) {
      if (buffer == program::no_buffer) continue;
      builder.emit(0, program::Fill{.dst = slice(buffer, entry.offset, entry.count()),
                                    .shard = entry.shard,
                                    .key = key,
                                    .exponent = exponent});
    }
  }
  if (optimizer_ != program::Optimizer::adam) return;
  const auto constant = [&](program::BufferId buffer, double value) {
    const std::uint64_t count = builder.buffer(buffer).count;
    builder.emit(0, program::Fill{.dst = slice(buffer, 0, count),
                                  .shard = {.extents = {1, 1, count}, .local = {0, 0, 1}},
                                  .source = program::FillSource::constant,
                                  .value = value});
  };
  constant(moment1_, 0);
  constant(moment2_, 0);
  constant(powers_, 1);
}

Slice Parameters::slice(program::BufferId buffer, std::uint64_t offset, std::uint64_t count) const {
  if (buffer == program::no_buffer) return {};
  return {.buffer = buffer, .offset = offset, .count = count};
}

const Parameter& Parameters::find(int layer_of_stage, Tensor tensor) const {
  const std::size_t head = has_vocabulary_ ? 1 : 0;
  const std::size_t layers = (parameters_.size() - head) / layer_tensors.size();
  const std::size_t from_last = layers - 1 - static_cast<std::size_t>(layer_of_stage);
  return parameters_[head + from_last * layer_tensors.size() + static_cast<std::size_t>(tensor)];
}

Slice Parameters::weight(int layer_of_stage, Tensor tensor) const {
  const Parameter& entry = find(layer_of_stage, tensor);
  return slice(weights_, entry.offset, entry.count());
}

Slice Parameters::gradient(int layer_of_stage, Tensor tensor) const {
  const Parameter& entry = find(layer_of_stage, tensor);
  return slice(gradients_, entry.offset, entry.count());
}

Slice Parameters::vocabulary_weight() const {
  return slice(weights_, parameters_.front().offset, parameters_.front().count());
}

Slice Parameters::vocabulary_gradient() const {
  return slice(gradients_, parameters_.front().offset, parameters_.front().count());
}

const Bucket* Parameters::completed_by(const Slice& gradient) const {
  const auto found = std::find_if(buckets_.begin(), buckets_.end(), [&](const Bucket& bucket) {
    return parameters_[bucket.last].offset == gradient.offset;
  });
  return found == buckets_.end() ? nullptr : &*found;
}

Slice Parameters::gradient(const Bucket& bucket) const {
  return slice(gradients_, bucket.offset, bucket.count);
}

void Parameters::emit_updates(Builder& builder, double tokens) const {
  builder.at({.phase = program::Phase::optimizer});
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const auto part = [&](program::BufferId buffer) {
      return slice(buffer, buckets_[i].offset, buckets_[i].count);
    };
    builder.emit(0, program::Update{.optimizer = optimizer_,
                                    .weight = part(weights_),
                                    .master = part(masters_),
                                    .gradient = part(gradients_),
                                    .moment1 = part(moment1_),
                                    .moment2 = part(moment2_),
                                    .powers = slice(powers_, 2 * i, 2),
                                    .gradient_scale = 1.0 / tokens,
                                    .rate = rate_,
                                    .epsilon = epsilon_});
  }
}

void Parameters::observe(Builder& builder) const {
  for (const Parameter& entry : parameters_) {
    builder.observe(entry.name + ".gradient", slice(gradients_, entry.offset, entry.count()),
                    entry.shard);
    builder.observe(
        entry.name + ".weight",
        slice(masters_ == program::no_buffer ? weights_ : masters_, entry.offset, entry.count()),
        entry.shard);
  }
}

}  // namespace isoscale::workloads::stack
