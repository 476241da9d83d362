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

#include "analysis/render/escaped_text_and_tables.hpp"
#include "mesh/mesh.hpp"
#include "statistics/estimate.hpp"

/// Makes the values of JSON reports, in which unknown values are null, and makes CSV cells from
/// these values.
namespace isoscale::analysis::render {

/// Returns the number; null if it is absent or not finite, since JSON has no NaN or infinity.
template <class Number>
[[nodiscard]] nlohmann::ordered_json number_or_null(const std::optional<Number>& number) {
  if (!number || !std::isfinite(static_cast<double>(*number))) return {};
  return *number;
}

[[nodiscard]] inline nlohmann::ordered_json number_or_null(double number) {
  return number_or_null(std::optional{number});
}

/// Returns a whole number of at most 9e15, which is exact in a double, as a JSON integer; treats
/// any other number like number_or_null().
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

/// Returns an object with value, lower and upper; null if `at` is absent. The bounds are null if
/// there is no interval.
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

/// Returns an object with median, lower, upper, min and max in seconds, null if they are absent.
/// The number of samples has the key that `samples` names.
[[nodiscard]] nlohmann::ordered_json time_json(const std::optional<statistics::Estimate>& time,
                                               const char* samples);
[[nodiscard]] nlohmann::ordered_json mesh_extents_json(const mesh::Shape& mesh);

// The overloads of value_json() convert a value of any type to JSON; null if it is absent, not
// finite, or "", except that an absent Estimate is an object with null times (see time_json()).

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
/// Converts values that have an interval as located_json() does, and other types as the JSON
/// library does, but returns null if they are absent or not finite.
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

/// Returns an object with the keys that identify a run in all reports: id, file, created,
/// isoscale_version, device, ranks, nodes, status and planned (the number of points to measure).
template <class Run>
[[nodiscard]] nlohmann::ordered_json run_head_json(const Run& run, const std::string& file) {
  return {{"id", run.id},
          {"file", file},
          {"created", run.created},
          {"isoscale_version", run.isoscale_version},
          {"device", run.device},
          {"ranks", run.ranks},
          {"nodes", run.nodes},
          {"status", run.complete ? "complete" : "partial"},
          {"planned", number_or_null(run.planned > 0 ? std::optional{run.planned} : std::nullopt)}};
}

/// Returns an object with the keys that both experiments and points have: workload, model, dtype,
/// scaling, placement and options.
template <class Of>
[[nodiscard]] nlohmann::ordered_json experiment_head_json(const Of& of) {
  return {{"workload", of.workload}, {"model", of.model},         {"dtype", of.dtype},
          {"scaling", of.scaling},   {"placement", of.placement}, {"options", of.options}};
}

/// Returns the text of a document, ASCII only, so that printing it on a terminal is safe; bytes
/// that are not UTF-8 are replaced.
[[nodiscard]] std::string dumped(const nlohmann::ordered_json& document);

/// Appends CSV cells with values from a JSON object. `columns` has an entry for each cell,
/// separated by blanks: "name=path/of/value", or only the path if that is the name, too. Lists
/// become "a;b", objects "key=value;key=value"; null and absent values become "".
void add_csv_cells(std::vector<CsvCell>& cells, const nlohmann::ordered_json& object,
                   std::string_view columns);

}  // namespace isoscale::analysis::render
