// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/json_values.hpp"

#include <fmt/format.h>

namespace isoscale::analysis::render {
namespace {

using Json = nlohmann::ordered_json;

/// Returns a value as text for a CSV cell, not yet escaped. A floating-point number becomes the
/// shortest text that reads back as the same number, or "" if it is not finite.
std::string plain_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    return std::isfinite(number) ? fmt::format("{}", number) : "";
  }
  if (value.is_number()) return value.dump();
  std::string text;
  for (const auto& [key, part] : value.items()) {
    if (!text.empty()) text += ";";
    text += (value.is_object() ? key + "=" : "") + plain_text(part);
  }
  return text;
}

/// Returns the value at a path of keys, separated by slashes; null if there is none.
Json value_at(const Json& object, std::string_view path) {
  const Json::json_pointer place{fmt::format("/{}", path)};
  return object.contains(place) ? object.at(place) : Json{};
}

}  // namespace

Json time_json(const std::optional<statistics::Estimate>& time, const char* samples) {
  const auto of = [&time](double statistics::Estimate::*member) {
    return number_or_null(time ? std::optional{*time.*member} : std::nullopt);
  };
  return {{"median", of(&statistics::Estimate::median)},
          {"lower", number_or_null(time ? time->lower : std::nullopt)},
          {"upper", number_or_null(time ? time->upper : std::nullopt)},
          {"min", of(&statistics::Estimate::minimum)},
          {"max", of(&statistics::Estimate::maximum)},
          {samples, time ? time->samples : 0}};
}

Json mesh_extents_json(const mesh::Shape& mesh) {
  return {{"dp", mesh.dp}, {"tp", mesh.tp}, {"pp", mesh.pp}, {"cp", mesh.cp}, {"ep", mesh.ep}};
}

std::string dumped(const Json& document) {
  return document.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

void add_csv_cells(std::vector<CsvCell>& cells, const Json& object, std::string_view columns) {
  for (const std::string_view entry : words_in(columns)) {
    const std::size_t equals = entry.find('=');
    const Json value = value_at(object, equals == entry.npos ? entry : entry.substr(equals + 1));
    const bool is_number = value.is_number();
    const std::string text = value.is_null() ? "" : plain_text(value);
    cells.emplace_back(entry.substr(0, equals), is_number ? text : text_cell(text));
  }
}

}  // namespace isoscale::analysis::render
