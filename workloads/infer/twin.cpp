// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <string>

#include "workloads/infer/setting.hpp"

namespace isoscale::workloads::infer {
namespace {

/// Widths scaled down to a few multiples of what tp must divide; at most two layers a stage.
Model small_model(const Model& real, const mesh::Shape& mesh) {
  Model model = real;
  model.head_size = std::min(real.head_size, 8);
  model.kv_heads = std::min(real.kv_heads, 2 * mesh.tp);
  model.heads = model.kv_heads * std::min(2, real.heads / real.kv_heads);
  model.hidden = std::min(real.hidden, 48);
  model.ffn = std::min(real.ffn, 64 * mesh.tp);
  model.vocabulary = std::min(real.vocabulary, 32 * mesh.tp);
  model.layers = mesh.pp * std::min(2, real.layers / mesh.pp);
  return model;
}

}  // namespace

Request twin(const Request& request) {
  const Setting setting = setting_of(request);
  const auto stages = static_cast<std::uint64_t>(request.mesh.pp);
  std::uint64_t groups = 0, samples = 0;  // of a group
  for (const std::uint64_t batch : setting.batches) {
    if (groups_of(batch, stages) < groups) continue;
    groups = groups_of(batch, stages);
    samples = std::min<std::uint64_t>(2, batch / groups);
  }
  Request small = request;
  small.model = small_model(request.model, request.mesh);
  small.keep = Keep::observables;
  small.options["prompt"] = std::to_string(std::min<std::uint64_t>(setting.prompt, 6));
  small.options["output"] = std::to_string(std::min<std::uint64_t>(setting.output, 4));
  small.options["batch"] = std::to_string(groups * samples);
  return small;
}

Request reference(const Request& twin) {
  Request one = twin;
  one.mesh = {};
  one.precision = Precision::f64;
  const std::uint64_t batch = setting_of(twin).batches.back();
  one.options["batch"] = std::to_string(batch * static_cast<std::uint64_t>(twin.mesh.dp));
  return one;
}

}  // namespace isoscale::workloads::infer
