// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/system_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "workloads/api/toml_files.hpp"

namespace isoscale::analysis::predict {
namespace {

constexpr std::size_t longest_text = 2000;
constexpr double largest_size = 1e18;

}  // namespace

SheetSection::SheetSection(const toml::table& table, std::string_view origin, std::string name,
                           std::vector<SheetKey>* asked)
    : table_(&table), origin_(origin), name_(std::move(name)), asked_(asked) {}

const toml::node* SheetSection::find(std::string_view key, std::string_view meaning, bool needed) {
  known_.emplace_back(key);
  if (asked_ != nullptr) {
    asked_->push_back({.key = full(key), .meaning = std::string{meaning}, .needed = needed});
  }
  return table_->get(key);
}

std::string SheetSection::full(std::string_view key) const {
  return name_.empty() ? std::string{key} : fmt::format("{}.{}", name_, key);
}

std::string SheetSection::where(std::string_view key) const {
  const toml::node* const node = table_->get(key);
  return workloads::place_of(origin_, node != nullptr ? node->source() : table_->source());
}

void SheetSection::refuse(std::string_view key, std::string_view why) const {
  throw base::usage_error("{}: {} {}", where(key), full(key), why);
}

void SheetSection::refuse_missing(std::string_view key, std::string_view meaning) const {
  throw base::usage_error("{}: the key '{}' is missing ({})", where(key), full(key), meaning);
}

double SheetSection::checked(const toml::node& node, std::string_view key,
                             const SheetRange& range) const {
  if (!node.is_number()) refuse(key, fmt::format("must be a number ({})", range.meaning));
  const double value = node.value<double>().value_or(NAN);
  if (!std::isfinite(value) || value < range.least || value > range.most) {
    refuse(key, fmt::format("is {:g}, but must lie between {:g} and {:g} ({})", value, range.least,
                            range.most, range.meaning));
  }
  return value;
}

double SheetSection::number(std::string_view key, const SheetRange& range) {
  const toml::node* const node = find(key, range.meaning, true);
  if (node == nullptr) refuse_missing(key, range.meaning);
  return checked(*node, key, range);
}

double SheetSection::number_or_0(std::string_view key, const SheetRange& range) {
  const toml::node* const node = find(key, range.meaning, false);
  return node == nullptr ? 0 : checked(*node, key, range);
}

int SheetSection::count(std::string_view key, const SheetRange& range) {
  return whole(number(key, range), key, range);
}

int SheetSection::count_or_0(std::string_view key, const SheetRange& range) {
  return whole(number_or_0(key, range), key, range);
}

int SheetSection::whole(double value, std::string_view key, const SheetRange& range) const {
  if (value != std::floor(value)) {
    refuse(key, fmt::format("is {:g}, but must be a whole number ({})", value, range.meaning));
  }
  return static_cast<int>(value);
}

std::string SheetSection::text(std::string_view key, std::string_view meaning) {
  const toml::node* const node = find(key, meaning, true);
  if (node == nullptr) refuse_missing(key, meaning);
  const auto* const value = node->as_string();
  if (value == nullptr) refuse(key, fmt::format("must be a string ({})", meaning));
  if (value->get().empty() || value->get().size() > longest_text || !base::is_plain(value->get())) {
    refuse(key,
           fmt::format("must be plain text of 1 to {} characters ({})", longest_text, meaning));
  }
  return value->get();
}

std::vector<std::string> SheetSection::texts(std::string_view key, std::string_view meaning) {
  const toml::node* const node = find(key, meaning, false);
  if (node == nullptr) return {};
  const auto* const array = node->as_array();
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

std::vector<simulate::ReachedShare> SheetSection::shares(std::string_view key,
                                                         std::string_view meaning) {
  const toml::node* const node = find(key, meaning, false);
  if (node == nullptr) return {};
  const SheetRange share{.least = 1e-6, .most = 1, .meaning = meaning};
  const auto* const list = node->as_array();
  if (list == nullptr) return {{.size = 1, .share = checked(*node, key, share)}};
  std::vector<simulate::ReachedShare> result;
  for (const toml::node& item : *list) {
    const auto* const pair = item.as_array();
    if (pair == nullptr || pair->size() != 2) {
      refuse(key, fmt::format("must be a share, or a list of [size, share] ({})", meaning));
    }
    const SheetRange size{.least = 1, .most = largest_size, .meaning = "size"};
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

std::optional<SheetSection> SheetSection::section(std::string_view key) {
  const toml::node* const node = find(key, "a table", false);
  if (node == nullptr) return std::nullopt;
  const auto* const table = node->as_table();
  if (table == nullptr) refuse(key, "must be a table");
  return SheetSection{*table, origin_, full(key), asked_};
}

SheetSection SheetSection::required_section(std::string_view key, std::string_view meaning) {
  auto result = section(key);
  if (!result) refuse_missing(key, meaning);
  return *std::move(result);
}

std::vector<SheetSection> SheetSection::sections(std::string_view key) {
  const toml::node* const node = find(key, "a list of tables", false);
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

std::vector<std::string> SheetSection::keys() const {
  std::vector<std::string> result;
  for (const auto& [key, node] : *table_) result.emplace_back(key.str());
  return result;
}

void SheetSection::refuse_unknown() const {
  const std::vector<std::string_view> known{known_.begin(), known_.end()};
  for (const auto& [key, node] : *table_) {
    if (std::ranges::find(known, key.str()) != known.end()) continue;
    throw base::usage_error(
        "{}: unknown key {}{}; {} has the keys {}", workloads::place_of(origin_, key.source()),
        base::quoted(full(key.str())), base::did_you_mean(key.str(), known),
        name_.empty() ? "a system file" : fmt::format("[{}]", name_), fmt::join(known, ", "));
  }
}

}  // namespace isoscale::analysis::predict
