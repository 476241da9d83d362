// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "analysis/render/text.hpp"
#include "mesh/mesh.hpp"
#include "statistics/estimate.hpp"

/// Makes the values of JSON reports, which are null if they are unknown, and CSV cells from these
/// values.
namespace isoscale::analysis::render {

/// Returns the number; null if it is absent or not finite, since JSON has no such numbers.
template <class Number>
[[nodiscard]] nlohmann::ordered_json number_or_null(const std::optional<Number>& number) {
  if (!number || !std::isfinite(static_cast<double>(*number))) return {};
  return *number;
}

[[nodiscard]] inline nlohmann::ordered_json number_or_null(double number) {
  return number_or_null(std::optional{number});
}

/// Returns a whole number as a JSON integer, and any other number as number_or_null() does.
[[nodiscard]] inline nlohmann::ordered_json count_or_null(const std::optional<double>& count) {
  constexpr double most = 9e15;
  if (!count || !(std::abs(*count) <= most) || *count != std::floor(*count)) {
    return number_or_null(count);
  }
  return static_cast<std::int64_t>(*count);
}

[[nodiscard]] inline nlohmann::ordered_json text_or_null(const std::string& text) {
  if (text.empty()) return {};
  return text;
}

/// Returns value, lower and upper of a figure, the latter null without an interval; null if absent.
template <class Figure>
[[nodiscard]] nlohmann::ordered_json located_json(const std::optional<Figure>& at) {
  if (!at) return {};
  return {{"value", number_or_null(at->value)},
          {"lower", number_or_null(at->lower)},
          {"upper", number_or_null(at->upper)}};
}

/// Returns a list with the value that `make` returns for each item.
template <class Items, class Make>
[[nodiscard]] nlohmann::ordered_json list_json(const Items& items, const Make& make) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& item : items) list.push_back(make(item));
  return list;
}

/// Returns median, lower, upper, min and max in seconds, and the number of samples under the key
/// `samples`.
[[nodiscard]] nlohmann::ordered_json time_json(const std::optional<statistics::Estimate>& time,
                                               const char* samples);
[[nodiscard]] nlohmann::ordered_json mesh_extents_json(const mesh::Shape& mesh);

// value_json() writes a value of any type; null if it is absent, not finite, or an empty text.

[[nodiscard]] inline nlohmann::ordered_json value_json(const std::string& text) {
  return text_or_null(text);
}
[[nodiscard]] inline nlohmann::ordered_json value_json(const char* text) {
  return text_or_null(text);
}
[[nodiscard]] inline nlohmann::ordered_json value_json(const std::optional<double>& number) {
  return number_or_null(number);
}
[[nodiscard]] inline nlohmann::ordered_json value_json(
    const std::optional<statistics::Estimate>& time) {
  return time_json(time, "plays");
}
/// Writes figures with an interval as located_json() does, and other types as the JSON library
/// does.
template <class Other>
[[nodiscard]] nlohmann::ordered_json value_json(const Other& value) {
  if constexpr (requires { value->upper; }) {
    return located_json(value);
  } else if constexpr (requires { value.has_value(); }) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json{};
  } else if constexpr (std::is_floating_point_v<Other>) {
    return number_or_null(value);
  } else {
    return value;
  }
}

/// Returns the keys that identify a run in all reports: id, file, created, isoscale_version,
/// device, ranks, nodes and status.
template <class Run>
[[nodiscard]] nlohmann::ordered_json run_head_json(const Run& run, const std::string& file) {
  return {{"id", run.id},           {"file", file},
          {"created", run.created}, {"isoscale_version", run.isoscale_version},
          {"device", run.device},   {"ranks", run.ranks},
          {"nodes", run.nodes},     {"status", run.complete ? "complete" : "partial"}};
}

/// Returns workload, model, dtype, scaling, placement and options of an experiment or a point.
template <class Of>
[[nodiscard]] nlohmann::ordered_json experiment_head_json(const Of& of) {
  return {{"workload", of.workload}, {"model", of.model},         {"dtype", of.dtype},
          {"scaling", of.scaling},   {"placement", of.placement}, {"options", of.options}};
}

/// Returns the text of a document, ASCII only, so that printing it on a terminal is safe; bytes
/// that are not UTF-8 are replaced.
[[nodiscard]] std::string dumped(const nlohmann::ordered_json& document);

/// Appends CSV cells with the values of a JSON object: one for each entry of `columns`, which are
/// separated by blanks. An entry is "name=path/of/value", or only the name where that is the path.
/// Lists become "a;b", objects "key=value;key=value", and null or absent values are empty.
void add_csv_cells(std::vector<CsvCell>& cells, const nlohmann::ordered_json& object,
                   std::string_view columns);

}  // namespace isoscale::analysis::render
