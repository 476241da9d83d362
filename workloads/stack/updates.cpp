// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/updates.hpp"

#include <optional>
#include <utility>

#include "workloads/stack/flat.hpp"

namespace isoscale::workloads::stack {

using program::Advice;
using program::BufferId;
using program::no_buffer;
using program::Slice;

namespace {

/// Of each kind one bucket is updated while the next comes; moments and masters are of one type.
constexpr std::size_t buckets_at_once = 2;

std::size_t state_count(const States& states) {
  std::size_t count = 0;
  for (const BufferId state : {states.masters, states.moment1, states.moment2}) {
    if (state != no_buffer) ++count;
  }
  return count;
}

}  // namespace

Updates::Updates(program::Builder& builder, const Parameters& parameters)
    : builder_(builder),
      parameters_(parameters),
      states_(builder,
              {.dtype = builder.buffer(parameters.states().gradients).dtype,
               .count = parameters.largest_bucket() / parameters.plan().shards},
              buckets_at_once * state_count(parameters.states())),
      weights_(builder,
               {.dtype = builder.buffer(parameters.states().weights).dtype,
                .count = parameters.largest_bucket()},
               buckets_at_once) {
  const StatePlan& plan = parameters_.plan();
  if (plan.overlaps && plan.zero > 0) dp_ = builder_.stream("dp");
  if (plan.overlaps && plan.offload != Offload::none) {
    fetch_ = builder_.stream("input");
    return_ = builder_.stream("states");
  }
  if (!advises(Offload::optimizer)) return;
  builder_.at({.phase = program::Phase::setup});
  const States& states = parameters_.states();
  for (const BufferId state : {states.masters, states.moment1, states.moment2}) {
    if (state == no_buffer) continue;
    builder_.emit(0,
                  program::Advise{.slice = builder_.whole(state), .advice = Advice::prefer_host});
  }
}

bool Updates::copies(Offload what) const {
  return parameters_.plan().offload == what && !parameters_.plan().is_managed();
}

bool Updates::advises(Offload what) const {
  return parameters_.plan().offload == what && parameters_.plan().is_managed();
}

void Updates::write(double tokens) {
  builder_.at({.phase = program::Phase::optimizer});
  const std::vector<Bucket>& buckets = parameters_.buckets();
  const bool is_ahead = parameters_.plan().overlaps;
  std::optional<Bundle> next;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    Bundle bundle = next ? std::move(*next) : fetch(buckets[i]);
    next.reset();
    if (is_ahead && i + 1 < buckets.size()) next = fetch(buckets[i + 1]);
    program::Update update = parameters_.update(i, tokens);
    update.weight = bundle.weight;
    update.master = bundle.master;
    update.moment1 = bundle.moment1;
    update.moment2 = bundle.moment2;
    const BufferId gradients = parameters_.states().gradients;
    update.gradient = parameters_.plan().shards_gradients()
                          ? parameters_.part(gradients, buckets[i])
                          : own_part(parameters_.gradient(buckets[i]), parameters_.plan().shards);
    builder_.emit(0, update);
    gather(bundle);
    give_back(buckets[i], bundle);
  }
  states_.release();
  weights_.release();
}

Updates::Bundle Updates::fetch(const Bucket& bucket) {
  const States& states = parameters_.states();
  Bundle bundle;
  fetch_state(bucket, states.masters, bundle.master, bundle);
  fetch_state(bucket, states.moment1, bundle.moment1, bundle);
  fetch_state(bucket, states.moment2, bundle.moment2, bundle);
  fetch_weight(bucket, bundle);
  return bundle;
}

void Updates::fetch_state(const Bucket& bucket, BufferId home, Slice& here, Bundle& bundle) {
  if (home == no_buffer) return;
  const Slice state = parameters_.part(home, bucket);
  here = state;
  if (advises(Offload::optimizer)) {
    builder_.emit(fetch_, program::Advise{.slice = state, .advice = Advice::prefetch_device});
  } else if (copies(Offload::optimizer)) {
    bundle.states.push_back(states_.take());
    here = flat(bundle.states.back(), 0, state.count);
    copy_flat(builder_, fetch_, state, here);
  }
}

void Updates::fetch_weight(const Bucket& bucket, Bundle& bundle) {
  const StatePlan& plan = parameters_.plan();
  const BufferId weights = parameters_.states().weights;
  if (plan.shards_weights()) {
    bundle.weight = bundle.whole_weight = parameters_.part(weights, bucket);
    return;
  }
  const Slice home = flat(weights, bucket.offset, bucket.count);
  bundle.whole_weight = home;
  if (copies(Offload::weights)) {
    bundle.weights.push_back(weights_.take());
    bundle.whole_weight = flat(bundle.weights.back(), 0, bucket.count);
  }
  bundle.weight = own_part(bundle.whole_weight, plan.shards);
  // With a master an update only writes the weight.
  if (copies(Offload::weights) && parameters_.states().masters == no_buffer) {
    copy_flat(builder_, fetch_, own_part(home, plan.shards), bundle.weight);
  }
}

void Updates::gather(const Bundle& bundle) {
  const StatePlan& plan = parameters_.plan();
  if (plan.zero == 0 || plan.shards_weights()) return;
  builder_.emit(dp_, program::Collective{.kind = program::CollectiveKind::all_gather,
                                         .axes = mesh::Axis::dp,
                                         .send = bundle.weight,
                                         .receive = bundle.whole_weight});
}

void Updates::return_state(const Bucket& bucket, BufferId home, const Slice& here) {
  if (home == no_buffer) return;
  const Slice state = parameters_.part(home, bucket);
  if (advises(Offload::optimizer)) {
    builder_.emit(return_, program::Advise{.slice = state, .advice = Advice::prefetch_host});
  } else if (copies(Offload::optimizer)) {
    copy_flat(builder_, return_, here, state);
  }
}

void Updates::give_back(const Bucket& bucket, Bundle& bundle) {
  const States& states = parameters_.states();
  return_state(bucket, states.masters, bundle.master);
  return_state(bucket, states.moment1, bundle.moment1);
  return_state(bucket, states.moment2, bundle.moment2);
  if (copies(Offload::weights)) {
    copy_flat(builder_, return_, bundle.whole_weight,
              flat(states.weights, bucket.offset, bucket.count));
  }
  for (const BufferId slot : bundle.states) states_.give_back(slot);
  for (const BufferId slot : bundle.weights) weights_.give_back(slot);
}

}  // namespace isoscale::workloads::stack
