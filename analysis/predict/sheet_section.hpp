// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/predict/system_file.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "program/op.hpp"
#include "simulate/machine.hpp"
#include "workloads/api/toml_files.hpp"

namespace isoscale::analysis::predict {

/// The allowed range of a number in a system file (the data sheet of a machine), limits included.
struct SheetRange {
  double least = 0, most = 0;
  std::string_view meaning;  ///< "bytes/s of the wire, one direction"
};

/// Reads one table of a system file or a software profile. Each error is a base::UsageError that
/// names file, line, key and reason.
class SheetSection {
 public:
  /// Opens a table. Messages call the file `origin` and the table `name` ("" = the whole file). If
  /// `asked` (not owned) is not null, each key that is read from the table or from its sections is
  /// added to it. Keeps a reference to the table.
  SheetSection(const toml::table& table, std::string_view origin, std::string name,
               std::vector<SheetKey>* asked)
      : table_(&table), origin_(origin), name_(std::move(name)), asked_(asked) {}

  [[nodiscard]] double number(std::string_view key, const SheetRange& range) {
    return checked(required(key, range.meaning), key, range);
  }

  /// Reads a number; returns 0 if the key is absent.
  [[nodiscard]] double number_or_0(std::string_view key, const SheetRange& range) {
    const toml::node* const node = find(key, range.meaning, false);
    return node == nullptr ? 0 : checked(*node, key, range);
  }

  [[nodiscard]] int count(std::string_view key, const SheetRange& range) {
    return whole(number(key, range), key, range);
  }

  /// Reads a count; returns 0 if the key is absent.
  [[nodiscard]] int count_or_0(std::string_view key, const SheetRange& range) {
    return whole(number_or_0(key, range), key, range);
  }

  [[nodiscard]] std::string text(std::string_view key, std::string_view meaning) {
    return checked_text(required(key, meaning), key, meaning);
  }

  /// Reads a text; returns "" if the key is absent.
  [[nodiscard]] std::string text_or_empty(std::string_view key, std::string_view meaning) {
    const toml::node* const node = find(key, meaning, false);
    return node == nullptr ? "" : checked_text(*node, key, meaning);
  }

  /// Reads an array of at least one string.
  [[nodiscard]] std::vector<std::string> texts(std::string_view key, std::string_view meaning) {
    const auto* const array = required(key, meaning).as_array();
    if (array == nullptr || array->empty()) {
      refuse(key, fmt::format("must be a list of strings ({})", meaning));
    }
    std::vector<std::string> result;
    for (const toml::node& item : *array) {
      const auto* const value = item.as_string();
      if (value == nullptr) refuse(key, fmt::format("must be a list of strings ({})", meaning));
      result.push_back(value->get());
    }
    return result;
  }

  /// Reads the share of a peak that is reached: one number for all sizes, or [[size, share], ...]
  /// in ascending order of size.
  [[nodiscard]] std::vector<simulate::ReachedShare> shares(std::string_view key,
                                                           std::string_view meaning) {
    return checked_shares(required(key, meaning), key, meaning);
  }

  /// Does the same as shares(), but returns an empty list if the key is absent.
  [[nodiscard]] std::vector<simulate::ReachedShare> shares_or_none(std::string_view key,
                                                                   std::string_view meaning) {
    const toml::node* const node = find(key, meaning, false);
    if (node == nullptr) return {};
    return checked_shares(*node, key, meaning);
  }

  /// Opens a table; returns nullopt if the key is absent.
  [[nodiscard]] std::optional<SheetSection> section(std::string_view key) {
    const toml::node* const node = find(key, "a table", false);
    if (node == nullptr) return std::nullopt;
    return checked_section(*node, key);
  }

  [[nodiscard]] SheetSection required_section(std::string_view key, std::string_view meaning) {
    return checked_section(required(key, meaning), key);
  }

  /// Opens an array of tables; returns an empty one if the key is absent.
  [[nodiscard]] std::vector<SheetSection> sections(std::string_view key) {
    const toml::node* const node = find(key, "a list of tables", false);
    if (node == nullptr) return {};
    return checked_sections(*node, key);
  }

  [[nodiscard]] std::vector<SheetSection> required_sections(std::string_view key,
                                                            std::string_view meaning) {
    return checked_sections(required(key, meaning), key);
  }

  [[nodiscard]] std::vector<std::string> keys() const {
    std::vector<std::string> result;
    for (const auto& [key, node] : *table_) result.emplace_back(key.str());
    return result;
  }

  /// Reads the whole table with the function `part_of`, and throws for keys that it did not read.
  template <class Part>
  [[nodiscard]] Part read(Part (*part_of)(SheetSection& section)) {
    Part part = part_of(*this);
    refuse_unknown();
    return part;
  }

  /// Throws if the table has keys that were not read before this call.
  void refuse_unknown() const {
    const std::vector<std::string_view> known{known_.begin(), known_.end()};
    for (const auto& [key, node] : *table_) {
      if (std::ranges::find(known, key.str()) != known.end()) continue;
      throw base::usage_error(
          "{}: unknown key {}{}; {} has the keys {}", workloads::place_of(origin_, key.source()),
          base::quoted(full(key.str())), base::did_you_mean(key.str(), known),
          name_.empty() ? "the file" : fmt::format("[{}]", name_), fmt::join(known, ", "));
    }
  }

  [[noreturn]] void refuse(std::string_view key, std::string_view why) const {
    throw base::usage_error("{}: {} {}", where(key), full(key), why);
  }

 private:
  [[nodiscard]] const toml::node* find(std::string_view key, std::string_view meaning,
                                       bool needed) {
    known_.emplace_back(key);
    if (asked_ != nullptr) {
      asked_->push_back({.key = full(key), .meaning = std::string{meaning}, .needed = needed});
    }
    return table_->get(key);
  }

  [[nodiscard]] const toml::node& required(std::string_view key, std::string_view meaning) {
    const toml::node* const node = find(key, meaning, true);
    if (node == nullptr) refuse_missing(key, meaning);
    return *node;
  }

  [[noreturn]] void refuse_missing(std::string_view key, std::string_view meaning) const {
    throw base::usage_error("{}: the key '{}' is missing ({})", where(key), full(key), meaning);
  }

  [[nodiscard]] std::string where(std::string_view key) const {
    const toml::node* const node = table_->get(key);
    return workloads::place_of(origin_, node != nullptr ? node->source() : table_->source());
  }

  [[nodiscard]] std::string full(std::string_view key) const {
    return name_.empty() ? std::string{key} : fmt::format("{}.{}", name_, key);
  }

  [[nodiscard]] std::string checked_text(const toml::node& node, std::string_view key,
                                         std::string_view meaning) const {
    constexpr std::size_t longest = 2000;
    const auto* const value = node.as_string();
    if (value == nullptr) refuse(key, fmt::format("must be a string ({})", meaning));
    if (value->get().empty() || value->get().size() > longest || !base::is_plain(value->get())) {
      refuse(key, fmt::format("must be plain text of 1 to {} characters ({})", longest, meaning));
    }
    return value->get();
  }

  [[nodiscard]] std::vector<simulate::ReachedShare> checked_shares(const toml::node& node,
                                                                   std::string_view key,
                                                                   std::string_view meaning) const {
    const SheetRange share{.least = 1e-6, .most = 1, .meaning = meaning};
    const SheetRange size{.least = 1, .most = 1e18, .meaning = "size"};
    const auto* const list = node.as_array();
    if (list == nullptr) return {{.size = 1, .share = checked(node, key, share)}};
    std::vector<simulate::ReachedShare> result;
    for (const toml::node& item : *list) {
      const auto* const pair = item.as_array();
      if (pair == nullptr || pair->size() != 2) {
        refuse(key, fmt::format("must be a share, or a list of [size, share] ({})", meaning));
      }
      result.push_back(
          {.size = checked((*pair)[0], key, size), .share = checked((*pair)[1], key, share)});
      if (result.size() > 1 && result[result.size() - 2].size >= result.back().size) {
        refuse(key, fmt::format("has sizes that do not ascend, {:g} after {:g}", result.back().size,
                                result[result.size() - 2].size));
      }
    }
    if (result.empty()) refuse(key, "is empty");
    return result;
  }

  [[nodiscard]] SheetSection checked_section(const toml::node& node, std::string_view key) const {
    const auto* const table = node.as_table();
    if (table == nullptr) refuse(key, "must be a table");
    return SheetSection{*table, origin_, full(key), asked_};
  }

  [[nodiscard]] std::vector<SheetSection> checked_sections(const toml::node& node,
                                                           std::string_view key) const {
    const auto* const array = node.as_array();
    if (array == nullptr || !array->is_array_of_tables()) {
      refuse(key, "must be a list of tables");
    }
    std::vector<SheetSection> result;
    for (const toml::node& item : *array) {
      result.emplace_back(*item.as_table(), origin_, full(key), asked_);
    }
    return result;
  }

  [[nodiscard]] int whole(double value, std::string_view key, const SheetRange& range) const {
    if (value != std::floor(value)) {
      refuse(key, fmt::format("is {:g}, but must be a whole number ({})", value, range.meaning));
    }
    return static_cast<int>(value);
  }

  [[nodiscard]] double checked(const toml::node& node, std::string_view key,
                               const SheetRange& range) const {
    if (!node.is_number()) refuse(key, fmt::format("must be a number ({})", range.meaning));
    const double value = node.value<double>().value_or(NAN);
    if (!std::isfinite(value) || value < range.least || value > range.most) {
      refuse(key, fmt::format("is {:g}, but must lie between {:g} and {:g} ({})", value,
                              range.least, range.most, range.meaning));
    }
    return value;
  }

  const toml::table* table_;
  std::string origin_, name_;
  std::vector<std::string> known_;
  std::vector<SheetKey>* asked_;
};

/// Returns the index of `text` in `names`. Throws base::UsageError if it is none of them.
inline std::size_t choice(const SheetSection& section, std::string_view key, std::string_view text,
                          std::span<const std::string_view> names) {
  const auto found = std::ranges::find(names, text);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  section.refuse(key, fmt::format("is {}{}; it is one of {}", base::quoted(text),
                                  base::did_you_mean(text, names), fmt::join(names, ", ")));
}

inline program::OpKind kind_of(const SheetSection& section, std::string_view key,
                               std::string_view text) {
  if (const auto kind = program::op_kind_of(text)) return *kind;
  section.refuse(
      key, fmt::format("names no kind of op{}", base::did_you_mean(text, program::op_kind_names)));
}

/// Returns the keys in alphabetical order, each once.
inline std::vector<SheetKey> distinct(std::vector<SheetKey> keys) {
  std::ranges::sort(keys, {}, &SheetKey::key);
  const auto repeated = std::ranges::unique(keys, {}, &SheetKey::key);
  keys.erase(repeated.begin(), repeated.end());
  return keys;
}

/// Words for messages about a kind of file: the folder of the built-in files, and the kind.
struct FileWords {
  std::string_view folder, kind;  ///< "systems", "system file"
};

/// Reads a file with `parse`: a built-in one by its name, or one whose name ends in .toml. Throws
/// base::UsageError for an unknown name; the message has the most similar known name.
template <class Parsed>
Parsed load(std::string_view name_or_path, const FileWords& words,
            std::span<const workloads::Preset> presets,
            Parsed (*parse)(std::string_view toml, std::string_view origin)) {
  std::vector<std::string_view> names;
  for (const workloads::Preset& preset : presets) {
    if (preset.name == name_or_path) {
      return parse(preset.toml, fmt::format("{}/{}.toml", words.folder, preset.name));
    }
    names.push_back(preset.name);
  }
  if (name_or_path.ends_with(".toml")) {
    return parse(workloads::read_small_file(name_or_path, words.kind), name_or_path);
  }
  throw base::usage_error("unknown {} {}{}; name one of {}, or a file that ends in .toml",
                          words.kind, base::quoted(name_or_path),
                          base::did_you_mean(name_or_path, names), fmt::join(names, ", "));
}

}  // namespace isoscale::analysis::predict
