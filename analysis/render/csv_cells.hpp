// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Comma-separated values as RFC 4180 has them, safe in a spreadsheet and on a terminal.
namespace isoscale::analysis {

/// The name of a column, and what a line has there.
using CsvCell = std::pair<std::string_view, std::string>;

/// All of a text, escaped as for a terminal. A spreadsheet takes a cell that begins with =, +, - or
/// @ for a formula; an apostrophe makes it text.
[[nodiscard]] std::string text_cell(std::string_view text);
/// The shortest text that reads back as the same number; empty = unknown.
[[nodiscard]] std::string number_cell(std::optional<double> number);

[[nodiscard]] std::string csv_heading(const std::vector<CsvCell>& cells);
[[nodiscard]] std::string csv_values(const std::vector<CsvCell>& cells);

}  // namespace isoscale::analysis
