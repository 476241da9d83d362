// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/render/document.hpp"

namespace isoscale::analysis {

/// The one description of a figure that reports give of an Item (a point, a curve, a row).
template <class Item>
struct Metric {
  std::string_view key;      ///< for programs: "step_time"
  std::string_view heading;  ///< for people: "step time"
  Unit unit = Unit::text;
  std::string_view sentence;    ///< what it means, for legends
  Value (*value)(const Item&);  ///< SI; nothing where it is undefined
  Keep keep = Keep::always;
};

/// Nothing for no words.
[[nodiscard]] inline Value words(std::string text) {
  return text.empty() ? Value{} : Value{std::move(text)};
}
/// Nothing for an absent number.
[[nodiscard]] inline Value number(const std::optional<Located>& at) {
  return at ? Value{*at} : Value{};
}

/// A row for each item and a column for each metric that some item has a value of.
template <class Item>
[[nodiscard]] DocumentTable table_of(std::span<const Metric<Item>> metrics,
                                     std::span<const Item> items) {
  DocumentTable table{.columns = {}, .rows = std::vector<std::vector<Value>>(items.size())};
  for (const Metric<Item>& metric : metrics) {
    std::vector<Value> values;
    bool any = false;
    for (const Item& item : items) {
      values.push_back(metric.value(item));
      any = any || !std::holds_alternative<std::monostate>(values.back());
    }
    if (!any) continue;
    table.columns.push_back({.key = std::string{metric.key},
                             .heading = std::string{metric.heading},
                             .unit = metric.unit,
                             .keep = metric.keep});
    for (std::size_t i = 0; i < items.size(); ++i) table.rows[i].push_back(std::move(values[i]));
  }
  return table;
}

/// "heading: sentence" of each metric.
template <class Item>
[[nodiscard]] std::vector<Note> legend_of(std::span<const Metric<Item>> metrics) {
  std::vector<Note> notes;
  for (const Metric<Item>& metric : metrics) {
    notes.push_back({.key = std::string{metric.heading}, .text = std::string{metric.sentence}});
  }
  return notes;
}

}  // namespace isoscale::analysis
