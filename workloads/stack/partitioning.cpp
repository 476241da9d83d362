// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/stack/partitioning.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace isoscale::workloads::stack {

namespace {

/// The numbers of microbatches that a schedule accepts on each replica: multiples of `unit` that
/// are at least `least`.
struct Turns {
  int unit = 1, least = 1;
};

Turns turns_of(const TrainingOptions& options, int stages) {
  if (stages == 1) return {};
  if (options.schedule == Schedule::interleaved) return {.unit = stages, .least = stages};
  return {.unit = 1, .least = options.schedule == Schedule::zb_h1 ? 2 : 1};
}

/// Returns the speed of each replica, which is the speed of its slowest rank.
std::vector<double> speed_of_replica(const Request& request) {
  std::vector<double> speeds(static_cast<std::size_t>(request.mesh.dp), HUGE_VAL);
  for (int rank = 0; rank < request.mesh.size(); ++rank) {
    const auto replica = static_cast<std::size_t>(mesh::coordinates(request.mesh, rank).dp);
    speeds[replica] =
        std::min(speeds[replica], request.speed_of_rank[static_cast<std::size_t>(rank)]);
  }
  return speeds;
}

std::vector<double> weights_of(const Partition& partition, const Request& request) {
  std::vector<double> weights(static_cast<std::size_t>(request.mesh.dp), 1);
  if (partition.kind == Partition::Kind::skewed) weights.front() = partition.skew;
  const bool is_measured = !request.speed_of_rank.empty();
  if (partition.kind == Partition::Kind::proportional && is_measured) {
    return speed_of_replica(request);
  }
  return weights;
}

}  // namespace

Geometry::Geometry(const Request& request, const mesh::Coordinates& coordinates)
    : options(options_of(request)), at(coordinates) {
  const Model& model = request.model;
  const auto share = [&](int whole) { return static_cast<std::uint64_t>(whole / request.mesh.tp); };
  tp = request.mesh.tp;
  stage = at.pp;
  stages = request.mesh.pp;
  cp = request.mesh.cp;
  ep = request.mesh.ep;
  replicas = cp * ep * request.mesh.dp;
  whole_sequence = static_cast<std::uint64_t>(model.sequence);
  sequence = whole_sequence / static_cast<std::uint64_t>(cp);
  microbatch = static_cast<std::uint64_t>(options.microbatch);
  const Distribution distribution = distribution_of(request);
  microbatches = distribution.microbatches.at(static_cast<std::size_t>(at.dp));
  all_microbatches = distribution.total();
  const int first = distribution.first(at.dp);
  const bool in_steps = first >= at.dp * microbatches;  // otherwise the base would be negative
  microbatch_step = in_steps ? microbatches : 0;
  microbatch_base = in_steps ? first - at.dp * microbatches : first;
  tokens = sequence * microbatch;
  sequence_parallel = tp > 1 && options.sequence_parallel;
  async_reduce = tp > 1 && options.async_reduce;
  ring = sequence_parallel && options.ring;
  chunks = tp > 1 ? static_cast<std::uint64_t>(options.chunks) : 1;
  shard_tokens = sequence_parallel ? tokens / static_cast<std::uint64_t>(tp) : tokens;
  hidden = static_cast<std::uint64_t>(model.hidden);
  head_size = static_cast<std::uint64_t>(model.head_size);
  kv_heads = share(model.kv_heads);
  grouped = static_cast<std::uint64_t>(model.heads / model.kv_heads);
  qkv = kv_heads * (grouped + 2) * head_size;
  context = kv_heads * grouped * head_size;
  ffn = share(model.ffn);
  up_parts = model.gated_mlp ? 2 : 1;
  pipeline = pipeline_of(request);
  pipeline.microbatches = microbatches;
  layers = 0;
  for (int chunk = 0; chunk < pipeline.chunks; ++chunk) {
    layers += pipeline.layers[static_cast<std::size_t>(pipeline.virtual_stage(stage, chunk))];
  }
  vocabulary = stage == stages - 1 && options.vocabulary ? share(model.vocabulary) : 0;
  local_experts = static_cast<int>(options.experts) / ep;
  trainer = request.trainer;
  const bool has_embedding = trainer != Trainer::none && options.vocabulary && stage == 0 &&
                             (stages > 1 || !model.tied_embedding);
  embedding = has_embedding ? share(model.vocabulary) * hidden : 0;
  residual_gain = 0.5 / model.layers;
}

LayerRange Geometry::layers_of(int chunk) const {
  const auto count = [this](int c) {
    return pipeline.layers[static_cast<std::size_t>(pipeline.virtual_stage(stage, c))];
  };
  LayerRange range{.first = 0, .count = count(chunk)};
  for (int c = 0; c < chunk; ++c) range.first += count(c);
  return range;
}

int Geometry::global_layer(int layer) const {
  int chunk = 0;
  while (layer >= layers_of(chunk).end()) ++chunk;
  const int here = pipeline.virtual_stage(stage, chunk);
  const auto begin = pipeline.layers.begin();
  return std::accumulate(begin, begin + here, layer - layers_of(chunk).first);
}

Types types_of(Precision precision) {
  using program::ComputeMode;
  // Only linear layers multiply in fp8. Attention's products and the vocabulary projection use
  // bf16, as in NVIDIA's Transformer Engine, because fp8 would cost them more accuracy than the
  // time it saves is worth.
  if (precision == Precision::fp8) {
    return {DType::bf16, DType::f32, ComputeMode::native, DType::e4m3, DType::e5m2};
  }
  const DType compute = stored_type(precision);
  const DType accumulate = compute == DType::f64 ? DType::f64 : DType::f32;
  const auto mode = precision == Precision::tf32 ? ComputeMode::tf32 : ComputeMode::native;
  return {compute, accumulate, mode, compute, compute};
}

Types types_of(Precision precision, Fp8Accumulate accumulate) {
  using program::Accumulation;
  Types types = types_of(precision);
  if (!types.casts_operands()) return types;
  if (accumulate != Fp8Accumulate::split) types.forward = Accumulation::fast;
  if (accumulate == Fp8Accumulate::fast) types.backward = Accumulation::fast;
  return types;
}

int Distribution::alike(int replica) const {
  const auto count = [this](int r) { return microbatches[static_cast<std::size_t>(r)]; };
  int begin = replica;
  while (begin > 0 && count(begin - 1) == count(replica)) --begin;
  // The index of a replica's first microbatch is base + step x coordinate along dp (see Geometry),
  // and the base must not be negative.
  return first(begin) >= begin * count(begin) ? begin : replica;
}

std::vector<int> distribute_by_weight(int total, const std::vector<double>& weights, int least) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int> result;
  std::vector<double> remainders;
  for (const double weight : weights) {
    const double share = total * weight / sum;
    result.push_back(static_cast<int>(share));
    remainders.push_back(share - std::floor(share));
  }
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return remainders[i]; });
  int left = total - std::accumulate(result.begin(), result.end(), 0);
  for (std::size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++result[order[i]];
  for (int& share : result) {
    while (share < least) {
      --*std::ranges::max_element(result);
      ++share;
    }
  }
  return result;
}

Distribution distribution_of(const Request& request) {
  const TrainingOptions options = options_of(request);
  const auto each = static_cast<int>(options.microbatches);
  const Partition& partition = options.partition;
  const Turns turns = turns_of(options, request.mesh.pp);
  Distribution distribution{.microbatches =
                                std::vector<int>(static_cast<std::size_t>(request.mesh.dp), each)};
  const bool is_equal = partition.kind == Partition::Kind::equal;
  // If the schedule cannot use this number of microbatches, require_pipeline() throws an error.
  if (is_equal || each % turns.unit != 0 || each < turns.least) return distribution;
  distribution.microbatches =
      distribute_by_weight(each / turns.unit * request.mesh.dp, weights_of(partition, request),
                           turns.least / turns.unit);
  for (int& share : distribution.microbatches) share *= turns.unit;
  return distribution;
}

void require_partition(const Request& scaled) {
  const TrainingOptions options = options_of(scaled);
  const Partition& partition = options.partition;
  const int dp = scaled.mesh.dp;
  if (partition.kind == Partition::Kind::equal || dp == 1) return;
  const Turns turns = turns_of(options, scaled.mesh.pp);
  const auto each = static_cast<int>(options.microbatches);
  // With partition=skewed the smallest share, before it is rounded, must be at least the minimum
  // number of microbatches of a replica. With partition=proportional, whose shares follow from
  // measured speeds, the mean share must be at least one unit more than the minimum.
  const double sum = partition.skew + dp - 1, smallest = std::min(partition.skew, 1.0);
  const bool is_skewed = partition.kind == Partition::Kind::skewed;
  const double needed = is_skewed ? turns.least * sum / smallest / dp : turns.least + turns.unit;
  const int nearest = static_cast<int>(std::ceil(needed / turns.unit - 1e-9)) * turns.unit;
  if (each >= nearest) return;
  throw usage_error(
      "partition={} deals {} microbatches to dp={} replicas, {} or more to each: too few; use "
      "microbatches={} a replica or more (batch={}), or partition=equal",
      text_of(scaled, "partition"), each * dp, dp, turns.least, nearest,
      options.microbatch * nearest * dp);
}

mesh::AxisSet program_axes(const Request& request) {
  const TrainingOptions options = options_of(request);
  // On a ring every rank multiplies its own rows first, so the rows of the logits, which
  // verification reads, are in a different order on each rank.
  const bool reads_rotated =
      options.ring && options.vocabulary && request.keep == Keep::observables;
  if (options.experts > 0) {  // routing depends on the samples
    return {mesh::Axis::cp, mesh::Axis::ep, mesh::Axis::dp, mesh::Axis::pp};
  }
  const bool replicas_differ =
      options.strategy == Strategy::funnel || options.partition.kind != Partition::Kind::equal;
  mesh::AxisSet axes = mesh::Axis::pp;
  if (reads_rotated) axes |= mesh::Axis::tp;
  if (replicas_differ) axes |= mesh::Axis::dp;
  return axes;
}

std::vector<int> replica_programs(const Request& request) {
  const TrainingOptions options = options_of(request);
  std::vector<int> result(static_cast<std::size_t>(request.mesh.dp), 1);
  if (options.experts == 0 && options.strategy == Strategy::funnel) {
    result.front() = 0;
    return result;
  }
  std::iota(result.begin(), result.end(), 0);
  if (options.experts > 0) return result;
  const Distribution distribution = distribution_of(request);
  for (int& replica : result) replica = distribution.alike(replica);
  return result;
}

}  // namespace isoscale::workloads::stack
