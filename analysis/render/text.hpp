// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Text of reports: escaping and order of names, and comma-separated values.
namespace isoscale::analysis {

/// Characters of one text that are shown to people: what a program writes itself is shorter.
inline constexpr std::size_t most_shown = 1000;
/// The limit of texts that programs read.
inline constexpr std::size_t whole_text = std::string_view::npos;

/// `text` fit for a terminal: what could move the cursor, change colours, reorder or hide other
/// text (control characters, direction marks, bytes that are not UTF-8) is written as \n, \x1b,
/// \u202e. Of more than `most_shown` characters the first are shown, and how long all is:
/// "xxx… (of 1048576 bytes)".
[[nodiscard]] std::string escape(std::string_view text);
/// The same of more than `most`.
[[nodiscard]] std::string escape_up_to(std::string_view text, std::size_t most);

/// Columns on a terminal: code points, for escaped text without wide characters.
[[nodiscard]] std::size_t display_width(std::string_view text);

/// True if `a` comes before `b` where numbers in names count as numbers: node2 before node10.
[[nodiscard]] bool before_naturally(std::string_view a, std::string_view b);

/// Stands in a cell for a number that is not defined.
inline constexpr std::string_view undefined = "—";

/// Lines of a report, each a key and a sentence.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// The name of a column of comma-separated values, and the text that a line has there. Lines are as
/// RFC 4180 has them, safe in a spreadsheet and on a terminal.
using CsvCell = std::pair<std::string_view, std::string>;

/// All of a text, escaped as for a terminal. A spreadsheet takes a cell that begins with =, +, - or
/// @ for a formula; an apostrophe makes it text.
[[nodiscard]] std::string text_cell(std::string_view text);
/// The shortest text that reads back as the same number; empty = unknown.
[[nodiscard]] std::string number_cell(std::optional<double> number);

[[nodiscard]] std::string csv_heading(const std::vector<CsvCell>& cells);
[[nodiscard]] std::string csv_values(const std::vector<CsvCell>& cells);

}  // namespace isoscale::analysis
