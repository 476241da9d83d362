// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace isoscale::workloads {

/// The transformer whose sizes a stack of GEMMs has.
struct Model {
  std::string name;
  std::string source;      ///< where the numbers were published
  int hidden = 0;          ///< h
  int ffn = 0;             ///< width of the MLP's inner layer
  int heads = 0;           ///< a, query heads
  int kv_heads = 0;        ///< key and value heads; = heads without grouping
  int head_size = 0;       ///< d
  bool gated_mlp = false;  ///< two up-projections (gate, up)
  int layers = 0;
  int sequence = 0;                 ///< s, tokens per sample
  int vocabulary = 0;               ///< V
  bool tied_embedding = true;       ///< the output projection shares the embedding's weights
  bool learned_positions = false;   ///< a position table of sequence x hidden
  double published_parameters = 0;  ///< as the source states; 0 = none published
  /// Samples of a training step: the source gives tokens, rounded here to the nearest multiple of
  /// 256; 0 = none published. Predictions from a data sheet start from it; a run has its own
  /// default.
  int batch = 0;

  bool operator==(const Model&) const = default;
};

/// Returns the names of the built-in presets, in the order of their size.
[[nodiscard]] std::vector<std::string> model_names();
/// Loads a preset by name, or a TOML file by path (anything that ends in .toml). Throws
/// base::UsageError for an unknown name (with the nearest one), and one error for all missing and
/// unknown keys and impossible numbers of a file together.
[[nodiscard]] Model load_model(std::string_view name_or_path);
/// Parses one model. `origin` names it in errors, and its stem is the name of a model that has
/// none.
[[nodiscard]] Model parse_model(std::string_view toml, std::string_view origin);

/// One key of a model file, as `list keys model` explains it.
struct ModelKey {
  std::string_view key, meaning;
  std::string_view fallback;  ///< the value where the file has none; "" = the key must be there
};
[[nodiscard]] std::vector<ModelKey> model_keys();

/// Returns the number of weights of the published model, with embeddings, positions, norms and
/// biases: a plain MLP comes with biases and norms of two vectors (GPT), a gated one with neither
/// (Llama).
[[nodiscard]] double parameter_count(const Model& model);

}  // namespace isoscale::workloads
