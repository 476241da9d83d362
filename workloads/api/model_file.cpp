// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/api/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <variant>

#include "base/text.hpp"
#include "workloads/api/toml_files.hpp"

namespace isoscale::workloads {

namespace {

/// One key of a model file. `fallback` describes, for the documentation, the value that is used if
/// the file lacks the key; the value itself is set by Model's initializer or by complete().
struct Field {
  std::string_view key;
  std::variant<std::string Model::*, int Model::*, bool Model::*, double Model::*> member;
  std::string_view meaning;
  std::string_view fallback;  ///< "" = the key is mandatory
  int least = 1;              ///< smallest valid value of an int; above 0 for the sizes of a model
};

constexpr int usual_vocabulary = 50304;

constexpr std::array fields{
    Field{"layers", &Model::layers, "number of layers", ""},
    Field{"hidden", &Model::hidden, "hidden size", ""},
    Field{"heads", &Model::heads, "number of query heads", ""},
    Field{"sequence", &Model::sequence, "tokens per sample", ""},
    Field{"name", &Model::name, "the model's name, in letters, digits and . _ -",
          "name of the file"},
    Field{"source", &Model::source, "where its numbers were published", "the file"},
    Field{"ffn", &Model::ffn, "width of the MLP's inner layer", "4 x hidden"},
    Field{"kv_heads", &Model::kv_heads, "number of key and value heads; = heads without grouping",
          "heads"},
    Field{"head_size", &Model::head_size, "width of one head", "hidden / heads"},
    Field{"gated_mlp", &Model::gated_mlp, "true if the MLP has a gate beside its up-projection",
          "false"},
    Field{"vocabulary", &Model::vocabulary, "number of token types", "50304"},
    Field{"tied_embedding", &Model::tied_embedding,
          "true if the output projection shares the embedding's weights", "true"},
    Field{"learned_positions", &Model::learned_positions, "true if positions have a table",
          "false"},
    Field{"published_parameters", &Model::published_parameters,
          "parameters that the source states; 0 where it states none", "0"},
    Field{"batch", &Model::batch,
          "samples of a training step, for predict of a data sheet; 0 where none is published", "0",
          0},
};

/// The largest valid whole number. No model needs more, and a product of two fits in 64 bits.
constexpr int largest = 1 << 24;

constexpr std::string_view name_letters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

constexpr std::size_t longest_name = 64;
constexpr std::size_t longest_source = 400;

// These functions read the value of one key. They return why it is invalid; "" if it is valid.

std::string read_value(const toml::node& node, const Field& /*field*/, std::string& into) {
  const auto* const value = node.as_string();
  if (value == nullptr) return "must be a string";
  into = value->get();
  if (into.empty()) return "is empty";
  if (!base::is_plain(into)) return "holds a control character";
  if (into.size() <= longest_source) return "";
  return fmt::format("is longer than {} characters", longest_source);
}
std::string read_value(const toml::node& node, const Field& field, int& into) {
  const auto* const value = node.as_integer();
  if (value == nullptr) return "must be a whole number";
  into = static_cast<int>(value->get());
  if (value->get() >= field.least && value->get() <= largest) return "";
  return fmt::format("is {}, but must lie between {} and {}", value->get(), field.least, largest);
}
std::string read_value(const toml::node& node, const Field& /*field*/, bool& into) {
  const auto* const value = node.as_boolean();
  if (value == nullptr) return "must be true or false";
  into = value->get();
  return "";
}
std::string read_value(const toml::node& node, const Field& /*field*/, double& into) {
  if (!node.is_number()) return "must be a number";
  into = node.value<double>().value_or(-1);
  return std::isfinite(into) && into >= 0 ? "" : "must be 0 or more";
}

void find_unknown_keys(const toml::table& table, std::string_view origin,
                       std::vector<std::string>& problems) {
  std::vector<std::string_view> keys;
  for (const Field& field : fields) keys.push_back(field.key);
  for (const auto& [key, node] : table) {
    const std::string_view name = key.str();
    if (std::ranges::find(keys, name) != keys.end()) continue;
    problems.push_back(fmt::format("{}: unknown key {}{}", place_of(origin, key.source()),
                                   base::quoted(name), base::did_you_mean(name, keys)));
  }
}

/// Reads the values of a table. If keys are missing, they are reported together as one problem.
Model read_fields(const toml::table& table, std::string_view origin,
                  std::vector<std::string>& problems) {
  Model model;
  std::vector<std::string> missing;
  for (const Field& field : fields) {
    if (const toml::node* const node = table.get(field.key)) {
      const std::string why = std::visit(
          [&](auto member) { return read_value(*node, field, model.*member); }, field.member);
      if (why.empty()) continue;
      problems.push_back(fmt::format("{}: {} {} ({})", place_of(origin, node->source()), field.key,
                                     why, field.meaning));
    } else if (field.fallback.empty()) {
      missing.push_back(fmt::format("{} ({})", field.key, field.meaning));
    }
  }
  if (!missing.empty()) {
    problems.push_back(
        fmt::format("{}: missing: {}", place_of(origin, table.source()), fmt::join(missing, ", ")));
  }
  return model;
}

/// Returns a model's name made from a path: "mine" for "/models/mine.toml". Characters that a name
/// may not have are left out, and a long name is cut. If no character is left, the name is
/// "unnamed".
std::string name_from(std::string_view origin) {
  std::string name = std::filesystem::path{origin}.stem().string();
  std::erase_if(name, [](char c) { return name_letters.find(c) == std::string_view::npos; });
  name.resize(std::min(name.size(), longest_name));
  return name.empty() ? "unnamed" : name;
}

/// Sets values that the table lacks: those that follow from other values or from the path of the
/// file, and the vocabulary, which has a usual size.
void complete(const toml::table& table, std::string_view origin, Model& model) {
  const auto has = [&](std::string_view key) { return table.contains(key); };
  if (!has("name")) model.name = name_from(origin);
  if (!has("source")) model.source = base::printable(origin).substr(0, longest_source);
  if (!has("ffn")) model.ffn = 4 * model.hidden;
  if (!has("kv_heads")) model.kv_heads = model.heads;
  if (!has("head_size")) model.head_size = model.hidden / std::max(1, model.heads);
  if (!has("vocabulary")) model.vocabulary = usual_vocabulary;
}

/// Adds problems for values that contradict each other, for widths computed from them that are too
/// large, and for a name that cannot be used in tables and file names.
void find_impossible(const toml::table& table, const Model& model, const std::string& where,
                     std::vector<std::string>& problems) {
  const auto refuse = [&](std::string_view why) {
    problems.push_back(fmt::format("{}: {}", where, why));
  };
  if (model.name.size() > longest_name ||
      model.name.find_first_not_of(name_letters) != std::string::npos) {
    refuse(fmt::format("name is {}; use at most {} letters, digits and . _ -",
                       base::quoted(model.name), longest_name));
  }
  if (model.heads < 1 || model.hidden < 1) return;
  if (!table.contains("head_size") && model.hidden % model.heads != 0) {
    return refuse(
        fmt::format("heads = {} does not divide hidden = {}; name head_size, or other "
                    "heads",
                    model.heads, model.hidden));
  }
  if (model.ffn > largest) {
    refuse(fmt::format("ffn = 4 x hidden = {}, but must be at most {}", model.ffn, largest));
  }
  if (model.kv_heads < 1 || model.heads % model.kv_heads != 0) {
    refuse(
        fmt::format("kv_heads = {} does not divide heads = {}; every key and value head serves "
                    "the same number of query heads",
                    model.kv_heads, model.heads));
  }
  const auto width = static_cast<std::int64_t>(model.heads) * model.head_size;
  if (width > largest) {
    refuse(fmt::format("heads x head_size = {} x {} = {}, but must be at most {}", model.heads,
                       model.head_size, width, largest));
  }
}

Model parse_preset(const Preset& preset) {
  return parse_model(preset.toml, fmt::format("models/{}.toml", preset.name));
}

}  // namespace

std::vector<ModelKey> model_keys() {
  std::vector<ModelKey> keys;
  for (const Field& field : fields) {
    keys.push_back({.key = field.key, .meaning = field.meaning, .fallback = field.fallback});
  }
  return keys;
}

std::vector<std::pair<std::string, int Model::*>> model_sizes() {
  std::vector<std::pair<std::string, int Model::*>> sizes;
  for (const Field& field : fields) {
    const auto* const member = std::get_if<int Model::*>(&field.member);
    if (member != nullptr && field.least > 0) sizes.emplace_back(field.key, *member);
  }
  return sizes;
}

Model read_model(const toml::table& table, std::string_view origin) {
  std::vector<std::string> problems;
  find_unknown_keys(table, origin, problems);
  Model model = read_fields(table, origin, problems);
  if (problems.empty()) {
    complete(table, origin, model);
    find_impossible(table, model, place_of(origin, table.source()), problems);
  }
  if (!problems.empty()) {
    throw usage_error("{}; all keys: isoscale list keys model", fmt::join(problems, "\n"));
  }
  return model;
}

std::string to_toml(const Model& model) {
  std::string text;
  for (const Field& field : fields) {
    const auto write = [&](auto member) {
      const auto& value = model.*member;
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
        text += fmt::format("{} = {}\n", field.key, toml_string(value));
      } else {
        text += fmt::format("{} = {}\n", field.key, value);
      }
    };
    std::visit(write, field.member);
  }
  return text;
}

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
  throw usage_error("unknown model {}{}; the models are {}; or name a file that ends in .toml",
                    base::quoted(name_or_path), base::did_you_mean(name_or_path, candidates),
                    fmt::join(names, ", "));
}

Model parse_model(std::string_view toml, std::string_view origin) {
  return read_model(parse_toml(toml, origin), origin);
}

double parameter_count(const Model& model) {
  const double h = model.hidden;
  const double query = static_cast<double>(model.heads) * model.head_size;
  const double key_value = 2.0 * model.kv_heads * model.head_size;
  const double up = (model.gated_mlp ? 2.0 : 1.0) * model.ffn;

  // Each term counts the weights of projections with the same input: the inputs times the outputs.
  double layer = h * (query + key_value) + query * h + h * up + model.ffn * h;
  // Models with a gated MLP (the Llama family) have no biases, and each norm has one vector (a
  // scale). Other models (GPT) have one bias per output, and each norm has two vectors (scale and
  // shift).
  const bool biases = !model.gated_mlp;
  if (biases) layer += (query + key_value) + h + up + h;
  const double norm = biases ? 2 * h : h;
  layer += 2 * norm;

  const double embeddings = (model.tied_embedding ? 1.0 : 2.0) * model.vocabulary * h;
  const double positions = model.learned_positions ? static_cast<double>(model.sequence) * h : 0.0;
  return model.layers * layer + norm + embeddings + positions;
}

}  // namespace isoscale::workloads
