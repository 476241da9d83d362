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

/// Text in reports: escaping, order of names, and comma-separated values.
namespace isoscale::analysis::render {

/// The largest number of characters that people are shown of one text; texts of the program itself
/// are shorter.
inline constexpr std::size_t most_shown = 1000;
/// The limit for texts that programs read: none.
inline constexpr std::size_t whole_text = std::string_view::npos;

/// Returns `text` in a form that is safe for a terminal. Anything that could move the cursor,
/// change colours, reorder or hide other text (control characters, direction marks, bytes that are
/// not UTF-8) is written as \n, \x1b, \u202e. Text of more than `most_shown` characters is cut,
/// and its size is added: "xxx… (of 1048576 bytes)".
[[nodiscard]] std::string escape(std::string_view text);
/// Escapes text as escape() does, with the limit `most`.
[[nodiscard]] std::string escape_up_to(std::string_view text, std::size_t most);

/// Returns the columns on a terminal: the number of code points, for escaped text without wide
/// characters.
[[nodiscard]] std::size_t display_width(std::string_view text);

/// True if `a` comes before `b` when digits in names are compared as numbers: node2 before node10.
[[nodiscard]] bool before_naturally(std::string_view a, std::string_view b);

/// The text of a cell whose number is not defined.
inline constexpr std::string_view undefined = "—";

/// Lines of a report, each with a key and a sentence.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// The name of a CSV column, and the text that a line has there. Lines follow RFC 4180 and are safe
/// in a spreadsheet and on a terminal.
using CsvCell = std::pair<std::string_view, std::string>;

/// Returns the whole text, escaped as for a terminal. An apostrophe precedes a text that begins
/// with =, +, - or @, which a spreadsheet would take for a formula.
[[nodiscard]] std::string text_cell(std::string_view text);
/// Returns the shortest text that reads back as the same number; empty = unknown.
[[nodiscard]] std::string number_cell(std::optional<double> number);

[[nodiscard]] std::string csv_heading(const std::vector<CsvCell>& cells);
[[nodiscard]] std::string csv_values(const std::vector<CsvCell>& cells);

}  // namespace isoscale::analysis::render
