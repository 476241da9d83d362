// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/stack/training_state_buffers.hpp"

#include <cmath>

#include "workloads/stack/weight_and_gradient_ops.hpp"

namespace isoscale::workloads::stack {

namespace {

/// Returns the learning rate of timed steps, of which there may be many thousands. The loss is half
/// the sum of squares of all `hidden` outputs of a token. If the rate did not fall with `hidden`,
/// descent would overshoot, and weights would grow to infinity. f32 masters can still represent
/// such small updates.
double timed_rate(const Model& model) { return 1e-3 / model.hidden; }

Update update_of(const Request& request) {
  const program::Optimizer optimizer = options_of(request).optimizer;
  if (request.keep == Keep::observables) return verified_update(optimizer, request.model.layers);
  return {.optimizer = optimizer, .rate = timed_rate(request.model)};
}

}  // namespace

StatePlan state_plan_of(const Request& request) {
  const TrainingOptions options = options_of(request);
  const Types types = types_of(request.precision);
  StatePlan plan;
  if (request.mesh.ep > 1 && options.experts == 0) plan.axis = mesh::Axis::ep;
  if (request.mesh[plan.axis] > 1) plan.zero = options.zero;
  if (plan.zero > 0) plan.shards = static_cast<std::uint64_t>(request.mesh[plan.axis]);
  plan.element = program::element_size(plan.zero == 3 ? types.compute : travel_type(request));
  const auto own = plan.zero == 3 ? options.gather_bucket : options.reduce_bucket;
  plan.bucket_bytes = plan.zero > 0 ? own.value_or(options.bucket) : options.bucket;
  plan.gathers_next_step =
      (plan.zero == 1 || plan.zero == 2) && options.gather == Gather::next_step;
  plan.offload = options.offload;
  plan.host = options.offload_memory == OffloadMemory::managed ? Space::managed : Space::pinned;
  return plan;
}

units::Bytes whole_states(const Request& request, int stage) {
  const Types types = types_of(request.precision);
  const std::vector<Parameter> parameters = parameters_of({request, {.pp = stage}});
  const std::uint64_t narrow = program::element_size(types.compute);
  const std::uint64_t wide = program::element_size(types.accumulate);
  const bool adam = options_of(request).optimizer == program::Optimizer::adam;
  const std::uint64_t each =
      narrow + wide + (types.has_master() ? wide : 0) + (adam ? 2 * wide : 0);
  return units::Bytes{(parameters.back().offset + parameters.back().count()) * each};
}

Update verified_update(program::Optimizer optimizer, int layers) {
  // epsilon is far above sqrt(v). So Adam's step, rate * m / (sqrt(v) + epsilon), differs only by a
  // few percent from a step of SGD with `rate` / epsilon as its rate.
  constexpr double epsilon = 100;
  const bool adam = optimizer == program::Optimizer::adam;
  return {.optimizer = optimizer,
          .rate = std::min(0.5, 0.005 * layers) * (adam ? epsilon : 1.0),
          .epsilon = epsilon};
}

std::uint64_t fill_key(std::uint64_t seed, std::string_view tensor) {
  std::uint64_t key = seed * 0x9E3779B97F4A7C15ULL + 0xCBF29CE484222325ULL;
  for (const char c : tensor)
    key = (key ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;  // FNV-1a
  return key;
}

Fill random_fill(const Slice& dst, const Shard& shard, std::uint64_t key, double deviation) {
  // Integers that are distributed evenly over -r ... r have the variance r (r + 1) / 3.
  constexpr double most = 127;
  const int exponent =
      static_cast<int>(std::ceil(std::log2(deviation / std::sqrt(most * (most + 1) / 3))));
  const double wanted = std::ldexp(deviation, -exponent);
  const double range = std::floor((std::sqrt(1 + 12 * wanted * wanted) - 1) / 2);
  return {.dst = dst,
          .shard = shard,
          .key = key,
          .exponent = exponent,
          .range = static_cast<std::int32_t>(std::min(range, most))};
}

Fill weight_fill(const Slice& dst, const Parameter& parameter, std::uint64_t seed) {
  return random_fill(dst, parameter.shard, fill_key(seed, parameter.name),
                     1 / std::sqrt(static_cast<double>(parameter.fan_in)));
}

Parameters::Parameters(Builder& builder, const Geometry& geometry, const Request& request)
    : g_(geometry),
      has_master_type_(types_of(request.precision).has_master()),
      update_(update_of(request)),
      parameters_(parameters_of(geometry)),
      plan_(state_plan_of(request)) {
  const Types types = types_of(request.precision);
  buckets_ = buckets_of(parameters_, plan_.bucket_bytes, plan_.element);
  pad_buckets(parameters_, buckets_, plan_.shards);
  allocate(builder, types, request);
  if (request.keep == Keep::observables && plan_.zero > 0) {
    const auto whole = [&](DType type, Role role) {
      return builder.allocate({.dtype = type, .role = role, .count = count()});
    };
    observed_gradients_ = whole(types.accumulate, Role::workspace);
    if (types.has_master() || plan_.shards_weights() || plan_.gathers_next_step) {
      observed_weights_ = whole(types.accumulate, Role::workspace);
    }
  }
  fill(builder, request.seed);
}

void Parameters::allocate(Builder& builder, const Types& types, const Request& request) {
  /// Allocates a buffer with 1/shards of all elements. If the memory of some training software is
  /// predicted (Geometry::trainer), the buffer counts as what that software keeps in its place:
  /// `modelled` elements of the type `kept`, but at least 1 byte, since 0 modelled bytes would
  /// mean the buffer's own size.
  const auto flat = [&](program::Buffer buffer, std::uint64_t shards, std::uint64_t modelled,
                        DType kept) {
    buffer.count = count() / shards;
    if (g_.trainer != Trainer::none) {
      buffer.modelled_bytes = std::max<std::uint64_t>(1, modelled * program::element_size(kept));
    }
    return builder.allocate(buffer);
  };
  const std::uint64_t all = count() + g_.embedding;
  const std::uint64_t shards = plan_.shards;
  const std::uint64_t of_weights = plan_.shards_weights() ? shards : 1;
  const std::uint64_t of_gradients = plan_.shards_gradients() ? shards : 1;
  // Training software that shards weights keeps them in f32 alone (FSDP). Software that multiplies
  // in fp8 keeps the weights of linear layers, if they stay on the device, only as the fp8 copies
  // that LinearWriter makes (Transformer Engine's fp8_model_init).
  std::uint64_t narrow = all / of_weights;
  if (types.has_master() && plan_.shards_weights()) narrow = 0;
  const bool stay = !plan_.shards_weights() && plan_.offload != Offload::weights;
  if (types.casts_operands() && stay) narrow = g_.vocabulary * g_.hidden + g_.embedding;
  states_.weights = flat(
      {.dtype = types.compute, .space = plan_.space_of(Offload::weights), .role = Role::weight},
      of_weights, narrow, types.compute);
  // Training software adds gradients up in the type in which it sends them.
  states_.gradients = flat({.dtype = types.accumulate, .role = Role::gradient}, of_gradients,
                           all / of_gradients, travel_type(request));
  // Training software shards its optimizer over all replicas, including those along cp
  // (Megatron-LM).
  const auto cp = static_cast<std::uint64_t>(g_.options.zero > 0 ? g_.cp : 1);
  const Space space = plan_.space_of(Offload::optimizer);
  const auto optimizer = [&](Role role) {
    return flat({.dtype = types.accumulate, .space = space, .role = role}, shards,
                all / (shards * cp), types.accumulate);
  };
  if (types.has_master() && !follows(g_)) states_.masters = optimizer(Role::master);
  if (update_.optimizer == program::Optimizer::adam && !follows(g_)) {
    states_.moment1 = optimizer(Role::optimizer);
    states_.moment2 = optimizer(Role::optimizer);
    states_.powers = builder.allocate(
        {.dtype = types.accumulate, .role = Role::optimizer, .count = 2 * buckets_.size()});
  }
}

void Parameters::fill(Builder& builder, std::uint64_t seed) const {
  builder.at({.phase = Phase::setup});
  const Range all{.offset = 0, .count = count()};
  if (plan_.shards_weights()) {
    draw_parts(builder, seed, states_.weights);
  } else {
    draw(builder, seed, states_.weights, 0, all);
  }
  const bool has_masters = states_.masters != no_buffer;
  if (has_masters && plan_.zero == 0) {
    draw(builder, seed, states_.masters, 0, all);
  } else if (has_masters && plan_.shards_gradients()) {
    draw_parts(builder, seed, states_.masters);
  } else if (has_masters) {
    draw_parts(builder, seed, states_.masters, states_.gradients);
  } else if (plan_.zero == 1) {
    for (const Bucket& bucket : buckets_) {  // nothing else writes the padding
      const std::uint64_t end = bucket.offset + bucket.count;
      fill_flat(builder, flat(states_.gradients, end - bucket.padding, bucket.padding), 0);
    }
  }
  if (observed_weights_ != no_buffer) draw(builder, seed, observed_weights_, 0, all);
  if (states_.moment1 == no_buffer) return;
  fill_flat(builder, builder.whole(states_.moment1), 0);
  fill_flat(builder, builder.whole(states_.moment2), 0);
  fill_flat(builder, builder.whole(states_.powers), 1);
}

void Parameters::draw(Builder& builder, std::uint64_t seed, BufferId into, std::uint64_t base,
                      Range of) const {
  for (const Parameter& entry : parameters_) {
    if (entry.offset < of.offset || entry.offset >= of.end()) continue;
    builder.emit(0, weight_fill(flat(into, entry.offset - base, entry.count()), entry, seed));
  }
  for (const Bucket& bucket : buckets_) {
    if (bucket.offset < of.offset || bucket.offset >= of.end()) continue;
    const std::uint64_t end = bucket.offset + bucket.count - base;
    fill_flat(builder, flat(into, end - bucket.padding, bucket.padding), 0);
  }
}

void Parameters::draw_parts(Builder& builder, std::uint64_t seed, BufferId into,
                            BufferId whole) const {
  BufferId scratch = whole;
  if (whole == no_buffer) {
    scratch = builder.temporary(
        {.dtype = builder.buffer(into).dtype, .role = Role::workspace, .count = largest_bucket()});
  }
  for (const Bucket& bucket : buckets_) {
    const std::uint64_t base = whole == no_buffer ? bucket.offset : 0;
    draw(builder, seed, scratch, base, {.offset = bucket.offset, .count = bucket.count});
    const Slice drawn = flat(scratch, bucket.offset - base, bucket.count);
    copy_flat(builder, 0, plan_.own_part(drawn), part(into, bucket));
  }
}

std::size_t Parameters::index(int layer_of_stage, Tensor tensor, int expert) const {
  if (layer_of_stage == vocabulary) return 0;
  const std::size_t head = g_.vocabulary > 0 ? 1 : 0;
  const auto from_last = static_cast<std::size_t>(g_.layers - 1 - layer_of_stage);
  const auto place = static_cast<std::size_t>(tensor);
  if (g_.local_experts == 0) return head + from_last * layer_tensors.size() + place;
  // With experts, the two attention tensors of each layer come first, and the tensors of all
  // experts follow after the attention tensors of all layers.
  constexpr std::size_t mlp = 2, attention = layer_tensors.size() - mlp;
  const auto experts = static_cast<std::size_t>(g_.local_experts);
  if (place >= mlp) return head + from_last * attention + place - mlp;
  const std::size_t dense = head + static_cast<std::size_t>(g_.layers) * attention;
  return dense + (from_last * mlp + place) * experts + static_cast<std::size_t>(expert);
}

Slice Parameters::weight(int layer_of_stage, Tensor tensor, int expert) const {
  const Parameter& entry = parameters_[index(layer_of_stage, tensor, expert)];
  return {.buffer = plan_.shards_weights() ? no_buffer : states_.weights,
          .offset = entry.offset,
          .count = entry.count()};
}

Slice Parameters::gradient(int layer_of_stage, Tensor tensor, int expert) const {
  const Parameter& entry = parameters_[index(layer_of_stage, tensor, expert)];
  return {.buffer = plan_.shards_gradients() ? no_buffer : states_.gradients,
          .offset = entry.offset,
          .count = entry.count()};
}

Range Parameters::range(int layer_of_stage) const {
  const Parameter& first = parameters_[index(layer_of_stage, layer_tensors.front())];
  const Parameter& last = parameters_[index(layer_of_stage, layer_tensors.back())];
  return {.offset = first.offset, .count = last.offset + last.count() - first.offset};
}

Update Parameters::update(std::size_t bucket) const {
  Update result = update_;
  result.powers = flat(states_.powers, 2 * bucket, 2);
  result.gradient_scale = 1.0 / g_.batch_tokens();
  return result;
}

void Parameters::gather_observed(Builder& builder, BufferId from, BufferId to) const {
  const bool is_whole = builder.buffer(from).count == count();
  for (const Bucket& bucket : buckets_) {
    Slice mine =
        is_whole ? plan_.own_part(flat(from, bucket.offset, bucket.count)) : part(from, bucket);
    if (builder.buffer(from).space != Space::device) {  // only device memory can be sent
      const BufferId copy = builder.temporary(
          {.dtype = builder.buffer(from).dtype, .role = Role::workspace, .count = mine.count});
      copy_flat(builder, 0, mine, builder.whole(copy));
      mine = builder.whole(copy);
    }
    communicate(builder, 0, CollectiveKind::all_gather, plan_.axis, mine,
                flat(to, bucket.offset, bucket.count));
  }
}

void Parameters::observe(Builder& builder) const {
  builder.at({.phase = Phase::optimizer});
  BufferId gradients = states_.gradients;
  BufferId weights = states_.masters == no_buffer ? states_.weights : states_.masters;
  if (observed_gradients_ != no_buffer) {
    gather_observed(builder, gradients, observed_gradients_);
    gradients = observed_gradients_;
  }
  if (observed_weights_ != no_buffer) {
    gather_observed(builder, weights, observed_weights_);
    weights = observed_weights_;
  }
  for (const Parameter& entry : parameters_) {
    const std::string& name = entry.observed_in.empty() ? entry.name : entry.observed_in;
    Shard shard = entry.shard;
    shard.base += entry.observed_base;
    if (!follows(g_)) {
      builder.observe(name + ".gradient", flat(gradients, entry.offset, entry.count()), shard);
    }
    // A weight in a narrow type is too coarse to show the small change of a step. Its master shows
    // it, but this replica has none.
    if (follows(g_) && has_master_type_) continue;
    builder.observe(name + ".weight", flat(weights, entry.offset, entry.count()), shard);
  }
}

}  // namespace isoscale::workloads::stack
