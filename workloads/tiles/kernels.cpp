// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/tiles/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "workloads/tiles/options.hpp"

namespace isoscale::workloads::tiles {
namespace {

using program::BufferId;
using program::Role;
using program::Slice;

/// All axes that a mesh of tiles may have.
constexpr mesh::AxisSet everyone{mesh::Axis::tp, mesh::Axis::cp, mesh::Axis::dp};

/// Under verification, an epsilon far above any gradient makes Adam's steps smooth: else the sign
/// of a gradient near 0 decides, and rounding decides that.
constexpr double verification_epsilon = 100;

/// The numbers of the update. Under verification the rate changes the largest weights by some
/// percent: far above rounding. Gradients go with the residual gain, 0.5 / layers.
program::Update update_of(const Geometry& g, const Request& request) {
  program::Update update;
  const bool adam = OptionReader{option_table(), request.options}.is("optimizer", "adam");
  if (adam) update.optimizer = program::Optimizer::adam;
  update.gradient_scale =
      1.0 / (static_cast<double>(g.whole.rows) * static_cast<double>(g.whole.columns) *
             static_cast<double>(g.whole_samples));
  if (request.keep == Keep::observables) {
    update.epsilon = verification_epsilon;
    update.rate = std::min(0.5, 0.005 * g.layers) * (adam ? verification_epsilon : 1.0);
  }
  return update;
}

}  // namespace

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
  const OptionReader options{option_table(), request.options};
  const stack::Types types = stack::types_of(request.precision);
  overlaps_ = options.is("overlap", "on");
  if (reduces_ && overlaps_) stream_ = builder.stream("gradients");
  buckets_ = stack::buckets_of(parameters_, options.bytes("bucket"),
                               program::element_size(types.accumulate));
  allocate(types);
  fill(request.seed);
}

void Kernels::allocate(const stack::Types& types) {
  const std::uint64_t count = parameters_.back().offset + parameters_.back().count();
  const auto flat = [&](program::DType type, Role role, std::uint64_t elements) {
    return builder_.allocate({.dtype = type, .role = role, .count = elements});
  };
  weights_ = flat(types.compute, Role::weight, count);
  gradients_ = flat(types.accumulate, Role::gradient, count);
  if (types.has_master()) masters_ = flat(types.accumulate, Role::master, count);
  if (update_.optimizer != program::Optimizer::adam) return;
  moment1_ = flat(types.accumulate, Role::optimizer, count);
  moment2_ = flat(types.accumulate, Role::optimizer, count);
  powers_ = flat(types.accumulate, Role::optimizer, 2 * buckets_.size());
}

void Kernels::fill(std::uint64_t seed) {
  builder_.at({.phase = program::Phase::setup});
  for (const stack::Parameter& entry : parameters_) {
    for (const BufferId buffer : {weights_, masters_}) {
      if (buffer == program::no_buffer) continue;
      builder_.emit(0, stack::weight_fill(part(buffer, entry.offset, entry.count()), entry, seed));
    }
  }
  if (update_.optimizer != program::Optimizer::adam) return;
  fill_constant(moment1_, 0);
  fill_constant(moment2_, 0);
  fill_constant(powers_, 1);
}

void Kernels::fill_constant(BufferId buffer, double value) {
  const std::uint64_t count = builder_.buffer(buffer).count;
  builder_.emit(0, program::Fill{.dst = part(buffer, 0, count),
                                 .shard = {.extents = {1, 1, count}, .local = {0, 0, 1}},
                                 .source = program::FillSource::constant,
                                 .value = value});
}

Slice Kernels::part(BufferId buffer, std::uint64_t offset, std::uint64_t count) const {
  if (buffer == program::no_buffer) return {};
  return {.buffer = buffer, .offset = offset, .count = count};
}

const stack::Parameter& Kernels::of(int layer) const {
  return parameters_[parameters_.size() - 1 - static_cast<std::size_t>(layer)];
}

Slice Kernels::weight(int layer) const {
  return part(weights_, of(layer).offset, of(layer).count());
}

Slice Kernels::gradient(int layer) const {
  return part(gradients_, of(layer).offset, of(layer).count());
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
  const Slice sum = part(gradients_, bucket.offset, bucket.count);
  builder_.emit(stream_, program::Collective{.kind = program::CollectiveKind::all_reduce,
                                             .axes = everyone,
                                             .send = sum,
                                             .receive = sum});
  builder_.at(place);
}

void Kernels::finish() {
  builder_.at({.phase = program::Phase::optimizer});
  if (reduces_ && !overlaps_) {
    for (const stack::Bucket& bucket : buckets_) reduce(bucket);
  }
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const auto slice = [&](BufferId buffer) {
      return part(buffer, buckets_[i].offset, buckets_[i].count);
    };
    program::Update update = update_;
    update.weight = slice(weights_);
    update.master = slice(masters_);
    update.gradient = slice(gradients_);
    update.moment1 = slice(moment1_);
    update.moment2 = slice(moment2_);
    update.powers = part(powers_, 2 * i, 2);
    builder_.emit(0, update);
  }
}

void Kernels::observe() const {
  for (const stack::Parameter& entry : parameters_) {
    const BufferId weights = masters_ == program::no_buffer ? weights_ : masters_;
    builder_.observe(entry.name + ".gradient", part(gradients_, entry.offset, entry.count()),
                     entry.shard);
    builder_.observe(entry.name + ".weight", part(weights, entry.offset, entry.count()),
                     entry.shard);
  }
}

}  // namespace isoscale::workloads::tiles
