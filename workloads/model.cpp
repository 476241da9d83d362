// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "workloads/model_toml.hpp"
#include "workloads/presets.hpp"
#include "workloads/toml_text.hpp"

namespace isoscale::workloads {
namespace {

Model parse_preset(const Preset& preset) {
  return parse_model(preset.toml, fmt::format("models/{}.toml", preset.name));
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<Model> models;
  for (const Preset& preset : model_presets()) models.push_back(parse_preset(preset));
  std::ranges::stable_sort(models, {}, parameter_count);
  std::vector<std::string> names;
  for (const Model& model : models) names.push_back(model.name);
  return names;
}

Model load_model(std::string_view name_or_path) {
  for (const Preset& preset : model_presets()) {
    if (preset.name == name_or_path) return parse_preset(preset);
  }
  if (name_or_path.ends_with(".toml")) {
    return parse_model(read_small_file(name_or_path, "model file"), name_or_path);
  }
  const std::vector<std::string> names = model_names();
  const std::vector<std::string_view> candidates{names.begin(), names.end()};
  throw base::UsageError(
      fmt::format("unknown model {}{}; the models are {}; or name a file that ends in .toml",
                  base::quoted(name_or_path), base::did_you_mean(name_or_path, candidates),
                  fmt::join(names, ", ")));
}

Model parse_model(std::string_view toml, std::string_view origin) {
  return read_model(parse_toml(toml, origin), origin);
}

double parameter_count(const Model& model) {
  const double h = model.hidden;
  const double query = static_cast<double>(model.heads) * model.head_size;
  const double key_value = 2.0 * model.kv_heads * model.head_size;
  const double up = (model.gated_mlp ? 2.0 : 1.0) * model.ffn;

  // Each projection: inputs x outputs.
  double layer = h * (query + key_value) + query * h + h * up + model.ffn * h;
  // Models with a gated MLP (Llama's family) have no biases and norms of one vector, the others
  // (GPT's) a bias per output and norms of two.
  const bool biases = !model.gated_mlp;
  if (biases) layer += (query + key_value) + h + up + h;
  const double norm = biases ? 2 * h : h;
  layer += 2 * norm;

  const double embeddings = (model.tied_embedding ? 1.0 : 2.0) * model.vocabulary * h;
  const double positions = model.learned_positions ? static_cast<double>(model.sequence) * h : 0.0;
  return model.layers * layer + norm + embeddings + positions;
}

}  // namespace isoscale::workloads
