// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/csv_cells.hpp"

#include <fmt/format.h>

#include <cmath>

#include "analysis/render/text_escape.hpp"

namespace isoscale::analysis {
namespace {

/// RFC 4180: quoted when it must be, quotes doubled.
std::string in_quotes(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string result = "\"";
  for (const char c : cell) result += c == '"' ? std::string{"\"\""} : std::string{c};
  return result + "\"";
}

template <class Projection>
std::string line(const std::vector<CsvCell>& cells, Projection projection) {
  std::string text;
  for (const CsvCell& cell : cells) {
    if (&cell != &cells.front()) text += ',';
    text += projection(cell);
  }
  return text + "\n";
}

}  // namespace

std::string text_cell(std::string_view text) {
  std::string cell = escape_up_to(text, whole_text);
  if (!cell.empty() && std::string_view{"=+-@"}.find(cell.front()) != std::string_view::npos) {
    cell.insert(cell.begin(), '\'');
  }
  return in_quotes(cell);
}

std::string number_cell(std::optional<double> number) {
  return number && std::isfinite(*number) ? fmt::format("{}", *number) : "";
}

std::string csv_heading(const std::vector<CsvCell>& cells) {
  return line(cells, [](const CsvCell& cell) { return cell.first; });
}

std::string csv_values(const std::vector<CsvCell>& cells) {
  return line(cells, [](const CsvCell& cell) { return cell.second; });
}

}  // namespace isoscale::analysis
