// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/gradients.hpp"

#include "workloads/stack/flat.hpp"
#include "workloads/stack/funnel.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::workloads::stack {

using program::BufferId;
using program::Collective;
using program::CollectiveKind;
using program::Slice;

namespace {

program::Buffer workspace(program::DType type, std::uint64_t count) {
  return {.dtype = type, .role = program::Role::workspace, .count = count};
}

}  // namespace

Gradients::Gradients(program::Builder& builder, const Geometry& geometry,
                     const Parameters& parameters, const Request& request)
    : builder_(builder),
      g_(geometry),
      parameters_(parameters),
      reduction_(builder, geometry, request, parameters.states().gradients),
      reduces_(geometry.replicas > 1 && !funnels(geometry, request)),
      reduces_experts_(geometry.replicas > geometry.ep),
      whole_(builder,
             workspace(types_of(request.precision).accumulate, parameters.largest_bucket()), 2),
      parts_(builder,
             workspace(types_of(request.precision).accumulate,
                       parameters.largest_bucket() / parameters.plan().shards),
             2) {
  const OptionReader options{option_table(), request.options};
  overlaps_ = options.is("overlap", "on");
  if (overlaps_ && reduces_) stream_ = builder_.stream("dp");
}

std::size_t Gradients::number(const Bucket& bucket) const {
  return static_cast<std::size_t>(&bucket - parameters_.buckets().data());
}

GradientTarget Gradients::target(const Slice& gradient, int microbatch) {
  if (!parameters_.plan().shards_gradients()) {
    return {.slice = gradient, .beta = microbatch == 0 ? 0.0 : 1.0};
  }
  const Bucket& bucket = parameters_.bucket_of(gradient);
  const auto [entry, is_new] = open_.try_emplace({number(bucket), microbatch}, program::no_buffer);
  if (is_new) {
    entry->second = whole_.take();
    fill_flat(builder_, flat(entry->second, bucket.count - bucket.padding, bucket.padding), 0);
  }
  return {.slice = flat(entry->second, gradient.offset - bucket.offset, gradient.count)};
}

void Gradients::done(const Slice& gradient, int microbatch) {
  const Bucket* const bucket = parameters_.completed_by(gradient);
  if (bucket == nullptr) return;
  if (parameters_.plan().shards_gradients()) {
    const auto whole = open_.extract({number(*bucket), microbatch});
    accumulate(*bucket, whole.mapped(), microbatch);
  } else if (reduces_ && overlaps_ && microbatch + 1 == g_.microbatches) {
    reduce(*bucket);
  }
}

void Gradients::finish() {
  whole_.release();
  parts_.release();
  if (!reduces_ || overlaps_ || parameters_.plan().shards_gradients()) return;
  for (const Bucket& bucket : parameters_.buckets()) reduce(bucket);
}

void Gradients::reduce(const Bucket& bucket) {
  if (bucket.of_expert && !reduces_experts_) return;
  const program::Place place = builder_.place();
  builder_.at(
      {.phase = program::Phase::gradient_reduction, .layer = place.layer, .microbatch = -1});
  const Slice slice = parameters_.gradient(bucket);
  if (parameters_.plan().zero > 0) {
    const Slice mine = own_part(slice, parameters_.plan().shards);
    reduce_scatter(slice, mine);
    reduce_part(mine);
  } else {
    const mesh::AxisSet dense{mesh::Axis::cp, mesh::Axis::ep, mesh::Axis::dp};
    const mesh::AxisSet expert{mesh::Axis::cp, mesh::Axis::dp};
    reduction_.write(stream_, slice, bucket.of_expert ? expert : dense);
  }
  builder_.at(place);
}

void Gradients::reduce_scatter(const Slice& whole, const Slice& part) {
  builder_.emit(stream_, Collective{.kind = CollectiveKind::reduce_scatter,
                                    .axes = mesh::Axis::dp,
                                    .send = whole,
                                    .receive = part});
}

void Gradients::reduce_part(const Slice& part) {
  if (g_.replicas == static_cast<int>(parameters_.plan().shards)) return;
  builder_.emit(stream_, Collective{.kind = CollectiveKind::all_reduce,
                                    .axes = {mesh::Axis::cp, mesh::Axis::ep},
                                    .send = part,
                                    .receive = part});
}

void Gradients::accumulate(const Bucket& bucket, BufferId whole, int microbatch) {
  const program::Place place = builder_.place();
  builder_.at({.phase = program::Phase::gradient_reduction,
               .layer = place.layer,
               .microbatch = microbatch});
  const Slice sum = parameters_.part(parameters_.states().gradients, bucket);
  const Slice sent = flat(whole, 0, bucket.count);
  if (microbatch == 0) {
    reduce_scatter(sent, sum);
  } else {
    const BufferId received = parts_.take();
    reduce_scatter(sent, flat(received, 0, sum.count));
    add_flat(builder_, stream_, flat(received, 0, sum.count), sum);
    parts_.give_back(received);
  }
  whole_.give_back(whole);
  if (microbatch + 1 == g_.microbatches) reduce_part(sum);
  builder_.at(place);
}

}  // namespace isoscale::workloads::stack
