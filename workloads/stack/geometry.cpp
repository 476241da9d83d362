// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/geometry.hpp"

#include <numeric>

#include "workloads/options.hpp"
#include "workloads/stack/options.hpp"
#include "workloads/stack/partition.hpp"
#include "workloads/stack/pipeline.hpp"

namespace isoscale::workloads::stack {

Geometry::Geometry(const Request& request, const mesh::Coordinates& coordinates) : at(coordinates) {
  const OptionReader options{option_table(), request.options};
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
  microbatch = static_cast<std::uint64_t>(options.integer("microbatch"));
  set_microbatches(deal_of(request));
  tokens = sequence * microbatch;
  sequence_parallel = tp > 1 && options.is("sequence_parallel", "on");
  ring = sequence_parallel && options.is("ring", "on");
  chunks = tp > 1 ? static_cast<std::uint64_t>(options.integer("chunks")) : 1;
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
  vocabulary = stage == stages - 1 && options.is("vocabulary", "on") ? share(model.vocabulary) : 0;
  local_experts = static_cast<int>(options.integer("experts")) / ep;
  residual_gain = 0.5 / model.layers;
  tp_output = options.is("tp_output", "gather") ? TpOutput::gather : TpOutput::reduce;
  elementwise = options.is("elementwise", "on");
  recompute = options.is("recompute", "full")        ? Recompute::full
              : options.is("recompute", "selective") ? Recompute::selective
                                                     : Recompute::none;
  hand_over_scattered = options.is("handover", "scattered");
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

void Geometry::set_microbatches(const Deal& deal) {
  microbatches = deal.microbatches.at(static_cast<std::size_t>(at.dp));
  all_microbatches = deal.total();
  const int first = deal.first(at.dp);
  const bool in_steps = first >= at.dp * microbatches;  // see Deal::alike
  microbatch_step = in_steps ? microbatches : 0;
  microbatch_base = in_steps ? first - at.dp * microbatches : first;
}

Types types_of(Precision precision) {
  using program::ComputeMode;
  using program::DType;
  const auto as_stored = [](DType compute, DType accumulate, ComputeMode mode) {
    return Types{compute, accumulate, mode, compute, compute};
  };
  switch (precision) {
    case Precision::f64:
      return as_stored(DType::f64, DType::f64, ComputeMode::native);
    case Precision::f32:
      return as_stored(DType::f32, DType::f32, ComputeMode::native);
    case Precision::tf32:
      return as_stored(DType::f32, DType::f32, ComputeMode::tf32);
    case Precision::f16:
      return as_stored(DType::f16, DType::f32, ComputeMode::native);
    case Precision::bf16:
      return as_stored(DType::bf16, DType::f32, ComputeMode::native);
    case Precision::fp8:
      break;
  }
  // The linear layers alone multiply in fp8. Attention's products and the vocabulary projection
  // stay in bf16, as in NVIDIA's Transformer Engine: their errors cost more than their time.
  return {DType::bf16, DType::f32, ComputeMode::native, DType::e4m3, DType::e5m2};
}

Types types_of(Precision precision, const OptionReader& options) {
  using program::Accumulation;
  Types types = types_of(precision);
  if (!types.casts_operands()) return types;
  if (!options.is("fp8_accumulate", "split")) types.forward = Accumulation::fast;
  if (options.is("fp8_accumulate", "fast")) types.backward = Accumulation::fast;
  return types;
}

OptionSpec fp8_accumulate_option() {
  return {.key = "fp8_accumulate",
          .default_value = "by-pass",
          .choices = {"by-pass", "fast", "split"},
          .help =
              "how GPUs add fp8 products: split, with partial sums in f32; fast, within tensor "
              "cores; by-pass, fast forward and split in gradients, as Transformer Engine does"};
}

}  // namespace isoscale::workloads::stack
