// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace isoscale::workloads {

/// The transformer after which a stack of GEMMs is modelled; it gives the sizes.
struct Model {
  std::string name;
  std::string source;      ///< where the numbers were published
  int hidden = 0;          ///< h
  int ffn = 0;             ///< width of the MLP between its two projections
  int heads = 0;           ///< a, query heads
  int kv_heads = 0;        ///< key and value heads; as many as `heads` without grouping
  int head_size = 0;       ///< d
  bool gated_mlp = false;  ///< the MLP has two up-projections (gate and up)
  int layers = 0;
  int sequence = 0;                 ///< s, tokens per sample
  int vocabulary = 0;               ///< V
  bool tied_embedding = true;       ///< output projection and embedding share weights
  bool learned_positions = false;   ///< a position table of sequence x hidden
  double published_parameters = 0;  ///< number stated by the source; 0 = none
  /// Samples of a training step. The source gives tokens, which are rounded to samples, to the
  /// nearest multiple of 256; 0 = none published. Predictions from a data sheet use it by default;
  /// runs have another default.
  int batch = 0;

  bool operator==(const Model&) const = default;
};

/// Returns the names of the built-in presets, in the order of their size.
[[nodiscard]] std::vector<std::string> model_names();
/// Returns a preset by its name, or the model in a TOML file by its path (which ends in .toml).
/// Throws base::UsageError for an unknown name (with the nearest one). For a file, one error lists
/// all missing and unknown keys and impossible numbers.
[[nodiscard]] Model load_model(std::string_view name_or_path);
/// Parses one model. `origin` names the file in errors; the model gets its stem as name if the text
/// has none.
[[nodiscard]] Model parse_model(std::string_view toml, std::string_view origin);

/// The description of one key of a model file, as in `isoscale list keys model`.
struct ModelKey {
  std::string_view key, meaning;
  std::string_view fallback;  ///< value if the file has none; "" = the key is mandatory
};
[[nodiscard]] std::vector<ModelKey> model_keys();

/// Returns the number of weights of the published model, with its embeddings, positions, norms and
/// biases. With a plain MLP it has biases, and norms of two vectors (GPT); with a gated MLP it has
/// no biases, and norms of one vector (Llama).
[[nodiscard]] double parameter_count(const Model& model);

}  // namespace isoscale::workloads
