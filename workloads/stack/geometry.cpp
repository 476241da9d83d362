// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/geometry.hpp"

#include "workloads/options.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::workloads::stack {

Geometry::Geometry(const Request& request, int at_stage) {
  const OptionReader options{option_table(), request.options};
  const Model& model = request.model;
  const auto share = [&](int whole) { return static_cast<std::uint64_t>(whole / request.mesh.tp); };
  tp = request.mesh.tp;
  stage = at_stage;
  stages = request.mesh.pp;
  sequence = static_cast<std::uint64_t>(model.sequence);
  microbatch = static_cast<std::uint64_t>(options.integer("microbatch"));
  microbatches = static_cast<int>(options.integer("microbatches"));
  tokens = sequence * microbatch;
  hidden = static_cast<std::uint64_t>(model.hidden);
  head_size = static_cast<std::uint64_t>(model.head_size);
  kv_heads = share(model.kv_heads);
  grouped = static_cast<std::uint64_t>(model.heads / model.kv_heads);
  qkv = kv_heads * (grouped + 2) * head_size;
  context = kv_heads * grouped * head_size;
  ffn = share(model.ffn);
  up_parts = model.gated_mlp ? 2 : 1;
  layers = model.layers / stages;
  first_layer = stage * layers;
  vocabulary = stage == stages - 1 && options.is("vocabulary", "on") ? share(model.vocabulary) : 0;
  residual_gain = 0.5 / model.layers;
  tp_output = options.is("tp_output", "gather") ? TpOutput::gather : TpOutput::reduce;
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

}  // namespace isoscale::workloads::stack
