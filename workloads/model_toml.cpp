// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/model_toml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "workloads/toml_text.hpp"

namespace isoscale::workloads {
namespace {

/// One key of a model file.
struct Field {
  std::string_view key;
  std::variant<std::string Model::*, int Model::*, bool Model::*, double Model::*> member;
  std::string_view meaning;
};

constexpr std::array fields{
    Field{"name", &Model::name, "the model's name, in letters, digits and . _ -"},
    Field{"source", &Model::source, "where its numbers were published"},
    Field{"hidden", &Model::hidden, "hidden size"},
    Field{"ffn", &Model::ffn, "width of the MLP's inner layer"},
    Field{"heads", &Model::heads, "number of query heads"},
    Field{"kv_heads", &Model::kv_heads, "number of key and value heads; = heads without grouping"},
    Field{"head_size", &Model::head_size, "width of one head"},
    Field{"gated_mlp", &Model::gated_mlp, "whether the MLP has a gate beside its up-projection"},
    Field{"layers", &Model::layers, "number of layers"},
    Field{"sequence", &Model::sequence, "tokens per sample"},
    Field{"vocabulary", &Model::vocabulary, "number of token types"},
    Field{"tied_embedding", &Model::tied_embedding,
          "whether the output projection shares the embedding's weights"},
    Field{"learned_positions", &Model::learned_positions, "whether positions have a table"},
    Field{"published_parameters", &Model::published_parameters,
          "parameters that the source states; 0 where it states none"},
};

constexpr int largest = 1 << 24;  ///< no extent of a model comes near; keeps products in range
constexpr std::size_t longest_name = 64;
constexpr std::size_t longest_source = 400;

/// Reads the values of one table; every error names the key and where it stands.
class FieldReader {
 public:
  FieldReader(const toml::node& node, std::string_view origin, const Field& field)
      : node_(node), origin_(origin), field_(field) {}

  void operator()(std::string Model::*member, Model& model) const {
    const auto* const value = node_.as_string();
    if (value == nullptr) refuse("must be a string");
    const std::string& text = value->get();
    if (text.empty()) refuse("is empty");
    if (!base::is_plain(text)) refuse("holds a control character");
    if (text.size() > longest_source) {
      refuse(fmt::format("is longer than {} characters", longest_source));
    }
    model.*member = text;
  }
  void operator()(int Model::*member, Model& model) const {
    const auto* const value = node_.as_integer();
    if (value == nullptr) refuse("must be a whole number");
    if (value->get() < 1 || value->get() > largest) {
      refuse(fmt::format("is {}, but must lie between 1 and {}", value->get(), largest));
    }
    model.*member = static_cast<int>(value->get());
  }
  void operator()(bool Model::*member, Model& model) const {
    const auto* const value = node_.as_boolean();
    if (value == nullptr) refuse("must be true or false");
    model.*member = value->get();
  }
  void operator()(double Model::*member, Model& model) const {
    if (!node_.is_number()) refuse("must be a number");
    const double value = node_.value<double>().value_or(-1);
    if (!std::isfinite(value) || value < 0) refuse("must be 0 or more");
    model.*member = value;
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw base::UsageError(fmt::format("{}: {} {} ({})", place_of(origin_, node_.source()),
                                       field_.key, why, field_.meaning));
  }

  const toml::node& node_;
  std::string_view origin_;
  const Field& field_;
};

void refuse_unknown_keys(const toml::table& table, std::string_view origin) {
  std::vector<std::string_view> keys;
  for (const Field& field : fields) keys.push_back(field.key);
  for (const auto& [key, node] : table) {
    const std::string_view name = key.str();
    if (std::ranges::find(keys, name) != keys.end()) continue;
    throw base::UsageError(fmt::format("{}: unknown key {}{}; a model has the keys {}",
                                       place_of(origin, key.source()), base::quoted(name),
                                       base::did_you_mean(name, keys), fmt::join(keys, ", ")));
  }
}

/// Limits between fields, and on the name, which goes into tables and file names.
void refuse_impossible(const Model& model, const std::string& where) {
  const auto refuse = [&](std::string_view why) {
    throw base::UsageError(fmt::format("{}: {}", where, why));
  };
  constexpr std::string_view allowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (model.name.size() > longest_name ||
      model.name.find_first_not_of(allowed) != std::string::npos) {
    refuse(fmt::format("name is {}; use at most {} letters, digits and . _ -",
                       base::quoted(model.name), longest_name));
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

}  // namespace

Model read_model(const toml::table& table, std::string_view origin) {
  refuse_unknown_keys(table, origin);
  Model model;
  for (const Field& field : fields) {
    const toml::node* const node = table.get(field.key);
    if (node == nullptr) {
      throw base::UsageError(fmt::format("{}: the key '{}' is missing ({})",
                                         place_of(origin, table.source()), field.key,
                                         field.meaning));
    }
    const FieldReader reader{*node, origin, field};
    std::visit([&](auto member) { reader(member, model); }, field.member);
  }
  refuse_impossible(model, place_of(origin, table.source()));
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

}  // namespace isoscale::workloads
