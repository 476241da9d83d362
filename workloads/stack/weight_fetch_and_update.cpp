// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/stack/weight_and_gradient_ops.hpp"

#include <algorithm>
#include <stdexcept>

namespace isoscale::workloads::stack {

namespace {

/// Returns the uses of a stage's weights in a step, in the order of its schedule. Each pass, except
/// for weight gradients, uses the weights of each of its layers and, in the last virtual stage, of
/// the output projection, if the stage has it.
std::vector<WeightUse> weight_uses(const Geometry& g) {
  std::vector<WeightUse> uses;
  std::size_t number = 0;
  for (const StageStep& step : steps_of(g.pipeline, g.stage)) {
    const auto* action = std::get_if<Action>(&step);
    if (action == nullptr || action->pass == Pass::weight_gradient) continue;
    const bool is_forward = action->pass == Pass::forward;
    const bool has_head =
        g.vocabulary > 0 &&
        g.pipeline.virtual_stage(g.stage, action->chunk) + 1 == g.pipeline.virtual_stages();
    const auto use = [&](int layer) {
      uses.push_back(
          {.layer = layer,
           .place = {.phase = is_forward ? Phase::forward : Phase::backward,
                     .layer = layer == Parameters::vocabulary ? -1 : g.global_layer(layer),
                     .microbatch = action->microbatch},
           .action = number});
    };
    const LayerRange layers = g.layers_of(action->chunk);
    if (is_forward) {
      for (int layer = layers.first; layer < layers.end(); ++layer) use(layer);
    }
    if (has_head) use(Parameters::vocabulary);
    if (!is_forward) {
      for (int layer = layers.end(); layer-- > layers.first;) use(layer);
    }
    ++number;
  }
  return uses;
}

/// The number of buckets whose offloaded data is on the device at a time: one is updated while the
/// next one is fetched. So many slots (device buffers) are needed for weights and for each
/// optimizer state (masters and moments).
constexpr std::size_t buckets_at_once = 2;

struct State {
  BufferId home;
  Slice Update::*here;
};

/// Returns the optimizer states of a stage: its master weights and moments, as far as it has them.
std::vector<State> states_in(const States& states) {
  std::vector<State> result{{states.masters, &Update::master},
                            {states.moment1, &Update::moment1},
                            {states.moment2, &Update::moment2}};
  std::erase_if(result, [](const State& state) { return state.home == no_buffer; });
  return result;
}

}  // namespace

Weights::Weights(Builder& builder, const Geometry& geometry, const Parameters& parameters)
    : builder_(builder),
      parameters_(parameters),
      resident_(!parameters.plan().shards_weights() &&
                parameters.plan().offload != Offload::weights),
      slots_(builder, {}, 1) {
  if (resident_) return;
  const StatePlan& plan = parameters.plan();
  // The number of streams is limited, so copies of weights share the stream on which inputs are
  // copied. Both use the same link, from host to device.
  if (geometry.options.overlap)
    stream_ = builder_.stream(plan.shards_weights() ? "states" : "input");
  uses_ = weight_uses(geometry);
  if (plan.shards_weights()) {
    for (const Bucket& bucket : parameters.buckets()) {
      units_.push_back({.offset = bucket.offset, .count = bucket.count});
    }
  } else {
    if (geometry.vocabulary > 0) units_.push_back(parameters.range(Parameters::vocabulary));
    for (int layer = geometry.layers; layer-- > 0;) units_.push_back(parameters.range(layer));
  }
  plan_stays();
  const BufferId weights = parameters.states().weights;
  if (plan.offload == Offload::weights && plan.is_managed()) {
    builder_.at({.phase = Phase::setup});
    for (const auto advice : {Advice::prefer_host, Advice::read_mostly}) {
      builder_.emit(0, Advise{.slice = builder_.whole(weights), .advice = advice});
    }
    return;
  }
  const std::uint64_t most = std::ranges::max_element(units_, {}, &Range::count)->count;
  slots_ = Slots{
      builder, {.dtype = builder.buffer(weights).dtype, .role = Role::workspace, .count = most}, 1};
}

std::vector<std::size_t> Weights::units_of(int layer) const {
  const Range range = parameters_.range(layer);
  std::vector<std::size_t> result;
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    if (units_[unit].offset < range.end() && range.offset < units_[unit].end()) {
      result.push_back(unit);
    }
  }
  return result;
}

void Weights::plan_stays() {
  std::map<int, std::vector<std::size_t>> units;   // indices in units_, by layer
  std::map<std::size_t, std::size_t> before, now;  // stays of the previous and of this use, by unit
  for (std::size_t use = 0; use < uses_.size(); ++use) {
    const int layer = uses_[use].layer;
    if (!units.contains(layer)) units[layer] = units_of(layer);
    const bool follows = use > 0 && uses_[use - 1].action == uses_[use].action;
    now.clear();
    for (const std::size_t unit : units[layer]) {
      const auto known = before.find(unit);
      if (follows && known != before.end()) {
        now[unit] = known->second;
        stays_[known->second].last_use = use;
      } else {
        now[unit] = stays_.size();
        stays_.push_back({.unit = unit, .first_use = use, .last_use = use});
      }
    }
    std::swap(before, now);
  }
}

void Weights::before(int layer) {
  if (resident_) return;
  if (uses_.at(use_).layer != layer) throw std::logic_error("weights are used out of turn");
  while (needed_ < stays_.size() && stays_[needed_].first_use <= use_) ++needed_;
  const std::size_t wanted = std::min(stays_.size(), needed_ + parameters_.options().prefetch);
  const Place place = builder_.place();
  for (; fetched_ < wanted; ++fetched_) {
    fetch(stays_[fetched_]);
    here_.push_back(fetched_);
  }
  builder_.at(place);
}

void Weights::fetch(Stay& stay) {
  builder_.at(uses_[stay.first_use].place);
  const StatePlan& plan = parameters_.plan();
  const Range unit = units_[stay.unit];
  const BufferId weights = parameters_.states().weights;
  if (!plan.shards_weights() && plan.is_managed()) {
    builder_.emit(stream_, Advise{.slice = flat(weights, unit.offset, unit.count),
                                  .advice = Advice::prefetch_device});
    return;
  }
  stay.slot = slots_.take();
  const Slice slot = flat(stay.slot, 0, unit.count);
  if (!plan.shards_weights()) {
    return copy_flat(builder_, stream_, flat(weights, unit.offset, unit.count), slot);
  }
  communicate(builder_, stream_, CollectiveKind::all_gather, plan.axis,
              parameters_.part(weights, parameters_.buckets()[stay.unit]), slot);
}

void Weights::after() {
  if (resident_) return;
  std::erase_if(here_, [this](std::size_t i) {
    const Stay& stay = stays_[i];
    if (stay.last_use != use_) return false;
    if (stay.slot != no_buffer) slots_.give_back(stay.slot);
    return true;
  });
  ++use_;
}

Slice Weights::of(int layer, Tensor tensor) const {
  const Slice weight = parameters_.weight(layer, tensor);
  if (resident_ || (!parameters_.plan().shards_weights() && parameters_.plan().is_managed())) {
    return weight;
  }
  for (const std::size_t i : here_) {
    const Stay& stay = stays_[i];
    const Range unit = units_[stay.unit];
    const bool is_now = stay.first_use <= use_ && use_ <= stay.last_use;
    if (is_now && unit.offset <= weight.offset && weight.offset < unit.end()) {
      return flat(stay.slot, weight.offset - unit.offset, weight.count);
    }
  }
  throw std::logic_error("a layer's weights are not there");
}

Updates::Updates(Builder& builder, const Parameters& parameters)
    : builder_(builder),
      parameters_(parameters),
      states_(builder,
              {.dtype = builder.buffer(parameters.states().gradients).dtype,
               .count = parameters.largest_bucket() / parameters.plan().shards},
              buckets_at_once * states_in(parameters.states()).size()),
      weights_(builder,
               {.dtype = builder.buffer(parameters.states().weights).dtype,
                .count = parameters.largest_bucket()},
               buckets_at_once) {
  const StatePlan& plan = parameters_.plan();
  const bool overlaps = parameters_.options().overlap;
  if (overlaps && plan.zero > 0) dp_ = builder_.stream("dp");
  if (overlaps && plan.offload != Offload::none) {
    fetch_ = builder_.stream("input");
    return_ = builder_.stream("states");
  }
  if (!advises(Offload::optimizer)) return;
  builder_.at({.phase = Phase::setup});
  for (const State& state : states_in(parameters_.states())) {
    builder_.emit(0, Advise{.slice = builder_.whole(state.home), .advice = Advice::prefer_host});
  }
}

void Updates::begin() {
  if (!parameters_.plan().gathers_next_step) return;
  builder_.at({.phase = Phase::forward});
  const std::vector<Bucket>& buckets = parameters_.buckets();  // from the last layer to the first
  for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket) {
    const Slice whole = flat(parameters_.states().weights, bucket->offset, bucket->count);
    gather(parameters_.plan().own_part(whole), whole);
  }
}

void Updates::write() {
  builder_.at({.phase = Phase::optimizer});
  const std::vector<Bucket>& buckets = parameters_.buckets();
  const bool is_ahead = parameters_.options().overlap;
  std::optional<Bundle> next;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    Bundle bundle = next ? std::move(*next) : fetch(i);
    next.reset();
    if (is_ahead && i + 1 < buckets.size()) next = fetch(i + 1);
    builder_.emit(0, bundle.update);
    const StatePlan& plan = parameters_.plan();
    if (plan.zero > 0 && !plan.shards_weights() && !plan.gathers_next_step) {
      gather(bundle.update.weight, bundle.whole_weight);
    }
    give_back(buckets[i], bundle);
  }
}

Updates::Bundle Updates::fetch(std::size_t number) {
  const Bucket& bucket = parameters_.buckets()[number];
  const StatePlan& plan = parameters_.plan();
  Bundle bundle{.update = parameters_.update(number)};
  bundle.update.gradient = plan.shards_gradients()
                               ? parameters_.part(parameters_.states().gradients, bucket)
                               : plan.own_part(parameters_.gradient(bucket));
  for (const auto& [home, member] : states_in(parameters_.states())) {
    const Slice state = parameters_.part(home, bucket);
    Slice& here = bundle.update.*member = state;
    if (advises(Offload::optimizer)) {
      builder_.emit(fetch_, Advise{.slice = state, .advice = Advice::prefetch_device});
    } else if (copies(Offload::optimizer)) {
      bundle.states.push_back(states_.take());
      here = flat(bundle.states.back(), 0, state.count);
      copy_flat(builder_, fetch_, state, here);
    }
  }
  fetch_weight(bucket, bundle);
  return bundle;
}

void Updates::fetch_weight(const Bucket& bucket, Bundle& bundle) {
  const StatePlan& plan = parameters_.plan();
  const BufferId weights = parameters_.states().weights;
  Slice& weight = bundle.update.weight;
  if (plan.shards_weights()) {
    weight = bundle.whole_weight = parameters_.part(weights, bucket);
    return;
  }
  const Slice home = flat(weights, bucket.offset, bucket.count);
  bundle.whole_weight = home;
  if (copies(Offload::weights)) {
    bundle.weights.push_back(weights_.take());
    bundle.whole_weight = flat(bundle.weights.back(), 0, bucket.count);
  }
  weight = plan.own_part(bundle.whole_weight);
  // If there are master weights, an update only writes the weights, so they need not be fetched.
  if (copies(Offload::weights) && parameters_.states().masters == no_buffer) {
    copy_flat(builder_, fetch_, plan.own_part(home), weight);
  }
}

void Updates::give_back(const Bucket& bucket, Bundle& bundle) {
  const States& states = parameters_.states();
  for (const auto& [home, member] : states_in(states)) {
    const Slice state = parameters_.part(home, bucket);
    if (advises(Offload::optimizer)) {
      builder_.emit(return_, Advise{.slice = state, .advice = Advice::prefetch_host});
    } else if (copies(Offload::optimizer)) {
      copy_flat(builder_, return_, bundle.update.*member, state);
    }
  }
  if (copies(Offload::weights)) {
    copy_flat(builder_, return_, bundle.whole_weight,
              flat(states.weights, bucket.offset, bucket.count));
  }
  for (const BufferId slot : bundle.states) states_.give_back(slot);
  for (const BufferId slot : bundle.weights) weights_.give_back(slot);
}

}  // namespace isoscale::workloads::stack
