// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/weights.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <variant>

#include "workloads/stack/flat.hpp"
#include "workloads/stack/stage_order.hpp"

namespace isoscale::workloads::stack {

using program::BufferId;
using program::Slice;

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
           .place = {.phase = is_forward ? program::Phase::forward : program::Phase::backward,
                     .layer = layer == Weights::vocabulary ? -1 : g.global_layer(layer),
                     .microbatch = action->microbatch},
           .action = number});
    };
    const LayerRange layers = g.layers_of(action->chunk);
    if (is_forward) {
      for (int layer = layers.first; layer < layers.end(); ++layer) use(layer);
    }
    if (has_head) use(Weights::vocabulary);
    if (!is_forward) {
      for (int layer = layers.end(); layer-- > layers.first;) use(layer);
    }
    ++number;
  }
  return uses;
}

Weights::Weights(program::Builder& builder, const Geometry& geometry, const Parameters& parameters)
    : builder_(builder),
      parameters_(parameters),
      resident_(!parameters.plan().shards_weights() &&
                parameters.plan().offload != Offload::weights),
      slots_(builder, {}, 1) {
  if (resident_) return;
  const StatePlan& plan = parameters.plan();
  // Copies share that of the inputs, which come the same way: there are few streams.
  if (plan.overlaps) stream_ = builder_.stream(plan.shards_weights() ? "states" : "input");
  uses_ = weight_uses(geometry);
  cut_units(geometry);
  plan_stays();
  const BufferId weights = parameters.states().weights;
  if (plan.offload == Offload::weights && plan.is_managed()) {
    builder_.at({.phase = program::Phase::setup});
    for (const auto advice : {program::Advice::prefer_host, program::Advice::read_mostly}) {
      builder_.emit(0, program::Advise{.slice = builder_.whole(weights), .advice = advice});
    }
    return;
  }
  const std::uint64_t most = std::ranges::max_element(units_, {}, &Range::count)->count;
  slots_ = Slots{
      builder,
      {.dtype = builder.buffer(weights).dtype, .role = program::Role::workspace, .count = most},
      1};
}

void Weights::cut_units(const Geometry& g) {
  if (parameters_.plan().shards_weights()) {
    for (const Bucket& bucket : parameters_.buckets()) {
      units_.push_back({.offset = bucket.offset, .count = bucket.count});
    }
    return;
  }
  if (g.vocabulary > 0) units_.push_back(parameters_.vocabulary_range());
  for (int layer = g.layers; layer-- > 0;) units_.push_back(parameters_.range(layer));
}

std::vector<std::size_t> Weights::units_of(int layer) const {
  const Range range =
      layer == vocabulary ? parameters_.vocabulary_range() : parameters_.range(layer);
  std::vector<std::size_t> result;
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    if (units_[unit].offset < range.end() && range.offset < units_[unit].end()) {
      result.push_back(unit);
    }
  }
  return result;
}

void Weights::plan_stays() {
  std::map<int, std::vector<std::size_t>> units;   // by layer
  std::map<std::size_t, std::size_t> before, now;  // stays by unit, of the use before and this one
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
  const std::size_t wanted = std::min(stays_.size(), needed_ + parameters_.plan().prefetch);
  const program::Place place = builder_.place();
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
    builder_.emit(stream_, program::Advise{.slice = flat(weights, unit.offset, unit.count),
                                           .advice = program::Advice::prefetch_device});
    return;
  }
  stay.slot = slots_.take();
  const Slice slot = flat(stay.slot, 0, unit.count);
  if (!plan.shards_weights()) {
    return copy_flat(builder_, stream_, flat(weights, unit.offset, unit.count), slot);
  }
  builder_.emit(stream_, program::Collective{
                             .kind = program::CollectiveKind::all_gather,
                             .axes = mesh::Axis::dp,
                             .send = parameters_.part(weights, parameters_.buckets()[stay.unit]),
                             .receive = slot});
}

void Weights::after() {
  if (resident_) return;
  std::erase_if(here_, [this](std::size_t i) {
    const Stay& stay = stays_[i];
    if (stay.last_use != use_) return false;
    if (stay.slot != program::no_buffer) slots_.give_back(stay.slot);
    return true;
  });
  ++use_;
}

Slice Weights::of(int layer, Tensor tensor) const {
  return held(parameters_.weight(layer, tensor));
}

Slice Weights::of_vocabulary() const { return held(parameters_.vocabulary_weight()); }

Slice Weights::held(const Slice& weight) const {
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

}  // namespace isoscale::workloads::stack
