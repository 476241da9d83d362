// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/funnel.hpp"

#include "workloads/stack/options.hpp"

namespace isoscale::workloads::stack {

using program::BufferId;
using program::CollectiveKind;
using program::Phase;
using program::Role;
using program::Slice;

bool funnels(const Geometry& geometry, const Request& request) {
  return geometry.replicas > 1 &&
         OptionReader{option_table(), request.options}.is("strategy", "funnel");
}

bool follows(const Geometry& geometry, const Request& request) {
  return geometry.at.dp != 0 && funnels(geometry, request);
}

Funnel::Funnel(program::Builder& builder, const Geometry& geometry, const Types& types,
               const Request& request)
    : builder_(builder),
      g_(geometry),
      type_(types.compute),
      is_on_(funnels(geometry, request)),
      is_root_(geometry.at.dp == 0) {}

void Funnel::emit(CollectiveKind kind, const Slice& send, const Slice& receive) {
  builder_.emit(0, program::Collective{
                       .kind = kind, .axes = mesh::Axis::dp, .send = send, .receive = receive});
}

void Funnel::gather_output(int microbatch, BufferId output) {
  builder_.at({.phase = Phase::forward, .layer = -1, .microbatch = microbatch});
  const std::uint64_t count = builder_.buffer(output).count;
  Output& gathered = outputs_[microbatch] = {.of_all = program::no_buffer, .count = count};
  if (is_root_) {
    gathered.of_all = builder_.allocate({.dtype = type_,
                                         .role = Role::activation,
                                         .microbatch = microbatch,
                                         .count = count * static_cast<std::uint64_t>(g_.replicas)});
  }
  emit(CollectiveKind::gather, builder_.whole(output),
       is_root_ ? builder_.whole(gathered.of_all) : Slice{});
}

BufferId Funnel::loss_gradient(int microbatch) {
  builder_.at({.phase = Phase::backward, .layer = -1, .microbatch = microbatch});
  const Output gathered = outputs_.at(microbatch);
  outputs_.erase(microbatch);
  const BufferId mine = builder_.allocate({.dtype = type_,
                                           .role = Role::activation,
                                           .microbatch = microbatch,
                                           .count = gathered.count});
  emit(CollectiveKind::scatter, is_root_ ? builder_.whole(gathered.of_all) : Slice{},
       builder_.whole(mine));
  if (is_root_) builder_.release(gathered.of_all);
  return mine;
}

void Funnel::reduce(const Parameters& parameters) {
  if (!is_on_) return;
  builder_.at({.phase = Phase::gradient_reduction});
  for (const Bucket& bucket : parameters.buckets()) {
    const Slice slice = parameters.gradient(bucket);
    emit(CollectiveKind::reduce, slice, slice);
  }
}

void Funnel::broadcast(const Parameters& parameters) {
  if (!is_on_) return;
  builder_.at({.phase = Phase::optimizer});
  for (const Bucket& bucket : parameters.buckets()) {
    const Slice slice = parameters.weight(bucket);
    emit(CollectiveKind::broadcast, slice, slice);
  }
}

}  // namespace isoscale::workloads::stack
