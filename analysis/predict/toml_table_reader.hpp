// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/predict/system_file.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "simulate/machine.hpp"
#include "workloads/api/toml_files.hpp"

namespace isoscale::analysis::predict {

/// The allowed range of a number in a system file (the data sheet of a machine), limits included.
struct SheetRange {
  double least = 0, most = 0;
  std::string_view meaning;  ///< "bytes/s of the wire, one direction"
};

/// Says if a key must be present.
enum class Need : std::uint8_t { required, optional };

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

  /// Reads a number; 0 if the key is absent and not needed.
  [[nodiscard]] double number(std::string_view key, const SheetRange& range,
                              Need need = Need::required) {
    const toml::node* const node = find(key, range.meaning, need);
    return node == nullptr ? 0 : checked(*node, key, range);
  }
  [[nodiscard]] double number_or_0(std::string_view key, const SheetRange& range) {
    return number(key, range, Need::optional);
  }

  /// Reads a whole number; 0 if the key is absent and not needed.
  [[nodiscard]] int count(std::string_view key, const SheetRange& range,
                          Need need = Need::required) {
    const double value = number(key, range, need);
    if (value != std::floor(value)) {
      refuse(key, fmt::format("is {:g}, but must be a whole number ({})", value, range.meaning));
    }
    return static_cast<int>(value);
  }
  [[nodiscard]] int count_or_0(std::string_view key, const SheetRange& range) {
    return count(key, range, Need::optional);
  }

  /// Reads a text; "" if the key is absent and not needed.
  [[nodiscard]] std::string text(std::string_view key, std::string_view meaning,
                                 Need need = Need::required) {
    constexpr std::size_t longest = 2000;
    const toml::node* const node = find(key, meaning, need);
    if (node == nullptr) return "";
    const auto* const value = node->as_string();
    if (value == nullptr) refuse(key, fmt::format("must be a string ({})", meaning));
    if (value->get().empty() || value->get().size() > longest || !base::is_plain(value->get())) {
      refuse(key, fmt::format("must be plain text of 1 to {} characters ({})", longest, meaning));
    }
    return value->get();
  }

  /// Reads an array of at least one string.
  [[nodiscard]] std::vector<std::string> texts(std::string_view key, std::string_view meaning) {
    const auto* const array = find(key, meaning, Need::required)->as_array();
    if (array == nullptr || array->empty() || !array->is_homogeneous<std::string>()) {
      refuse(key, fmt::format("must be a list of strings ({})", meaning));
    }
    std::vector<std::string> result;
    for (const toml::node& item : *array) result.push_back(item.as_string()->get());
    return result;
  }

  /// Reads the share of a peak that is reached: one number for all sizes, or [[size, share], ...]
  /// in ascending order of size. The list is empty if the key is absent and not needed.
  [[nodiscard]] std::vector<simulate::ReachedShare> shares(std::string_view key,
                                                           std::string_view meaning, Need need) {
    const SheetRange share{.least = 1e-6, .most = 1, .meaning = meaning};
    const SheetRange size{.least = 1, .most = 1e18, .meaning = "size"};
    const toml::node* const node = find(key, meaning, need);
    if (node == nullptr) return {};
    const auto* const list = node->as_array();
    if (list == nullptr) return {{.size = 1, .share = checked(*node, key, share)}};
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

  /// Opens a table; absent if the key is absent and not needed.
  [[nodiscard]] std::optional<SheetSection> section(std::string_view key,
                                                    std::string_view meaning = "a table",
                                                    Need need = Need::optional) {
    const toml::node* const node = find(key, meaning, need);
    if (node == nullptr) return std::nullopt;
    const auto* const table = node->as_table();
    if (table == nullptr) refuse(key, "must be a table");
    return SheetSection{*table, origin_, full(key), asked_};
  }
  [[nodiscard]] SheetSection required_section(std::string_view key, std::string_view meaning) {
    return *section(key, meaning, Need::required);
  }

  /// Opens an array of tables; an empty one if the key is absent and not needed.
  [[nodiscard]] std::vector<SheetSection> sections(std::string_view key,
                                                   std::string_view meaning = "a list of tables",
                                                   Need need = Need::optional) {
    const toml::node* const node = find(key, meaning, need);
    if (node == nullptr) return {};
    const auto* const array = node->as_array();
    if (array == nullptr || !array->is_array_of_tables()) {
      refuse(key, "must be a list of tables");
    }
    std::vector<SheetSection> result;
    for (const toml::node& item : *array) {
      result.emplace_back(*item.as_table(), origin_, full(key), asked_);
    }
    return result;
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
  /// Returns the value of a key; null if it is absent and not needed.
  [[nodiscard]] const toml::node* find(std::string_view key, std::string_view meaning, Need need) {
    const bool needed = need == Need::required;
    known_.emplace_back(key);
    if (asked_ != nullptr) {
      asked_->push_back({.key = full(key), .meaning = std::string{meaning}, .needed = needed});
    }
    const toml::node* const node = table_->get(key);
    if (node != nullptr || !needed) return node;
    throw base::usage_error("{}: the key '{}' is missing ({})", where(key), full(key), meaning);
  }

  [[nodiscard]] std::string where(std::string_view key) const {
    const toml::node* const node = table_->get(key);
    return workloads::place_of(origin_, node != nullptr ? node->source() : table_->source());
  }

  [[nodiscard]] std::string full(std::string_view key) const {
    return name_.empty() ? std::string{key} : fmt::format("{}.{}", name_, key);
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

}  // namespace isoscale::analysis::predict
