// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Handles text in reports: escaping, the order of names, comma-separated values, and tables of
/// text in plain text and Markdown.
namespace isoscale::analysis::render {

/// Reports for people show at most this many characters of one text. Only texts that come from
/// files can be longer, and are cut.
inline constexpr std::size_t most_shown = 1000;
/// The limit for texts in reports that other programs read (CSV): these texts are never cut.
inline constexpr std::size_t whole_text = std::string_view::npos;

/// Returns `text` in a form that is safe for a terminal. Control characters, direction marks and
/// bytes that are not UTF-8 could move the cursor, change colours, or reorder or hide other text;
/// they are written as \n, \x1b, \u202e. Text of more than `most_shown` characters is cut, and its
/// size is added: "xxx… (of 1048576 bytes)".
[[nodiscard]] std::string escape(std::string_view text);
/// Escapes text as escape() does, but cuts it after `most` characters.
[[nodiscard]] std::string escape_up_to(std::string_view text, std::size_t most);

/// Returns the number of columns that escaped text takes on a terminal, which is its number of code
/// points; wide characters count as one column.
[[nodiscard]] std::size_t display_width(std::string_view text);

/// Returns escaped text in at most `columns` columns of a terminal, with "…" at the end if it was
/// cut.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t columns);
/// Splits a list at its blanks and returns the words.
[[nodiscard]] std::vector<std::string_view> words_in(std::string_view list);
/// Returns escaped text in lines of at most `columns` columns, each beginning with `indent` blanks.
/// A word that is longer has a line of its own. Returns "" for an empty text.
[[nodiscard]] std::string in_lines(std::string_view text, std::size_t indent, std::size_t columns);

/// True if `a` comes before `b` when digits in names are compared as numbers: node2 before node10.
[[nodiscard]] bool before_naturally(std::string_view a, std::string_view b);

/// The text of a table cell whose value is absent.
inline constexpr std::string_view undefined = "—";

/// Lines of a report, each with a key and a sentence.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// A CSV cell: the name of its column, and its text in one line. Lines follow RFC 4180 and are safe
/// in a spreadsheet and on a terminal.
using CsvCell = std::pair<std::string_view, std::string>;

/// Returns the text of a CSV cell, escaped as escape() does but never cut, and in quotes if RFC
/// 4180 asks for them. An apostrophe precedes a text that begins with =, +, - or @, which a
/// spreadsheet would take for a formula.
[[nodiscard]] std::string text_cell(std::string_view text);

[[nodiscard]] std::string csv_heading(const std::vector<CsvCell>& cells);
[[nodiscard]] std::string csv_values(const std::vector<CsvCell>& cells);

// The following declare tables of text that is already escaped.

enum class Align : std::uint8_t {
  left,
  right,
  drawing,  ///< bars, aligned left; only plain text shows them
};

struct Column {
  std::string heading;
  Align align = Align::right;
};

struct Row {
  std::vector<std::string> cells;  ///< columns beyond this list have empty cells
  /// A text after the last cell, which may extend over the remaining columns.
  std::string tail{};
};

struct TitledTable {
  std::string title{};  ///< "" = no title
  std::vector<Column> columns{};
  std::vector<Row> rows{};
};

/// Returns the width of each column: that of its heading or its widest cell.
[[nodiscard]] std::vector<std::size_t> widths_of(const TitledTable& table);
/// Returns the table as text below its title, indented by two blanks, with two blanks between
/// columns; lines do not end in blanks.
[[nodiscard]] std::string plain_table(const TitledTable& table);

/// Returns escaped text with Markdown's special characters escaped, too, so it is shown as it is.
[[nodiscard]] std::string literal(std::string_view text);
/// Returns the table in Markdown, with its title above and without columns of Align::drawing.
[[nodiscard]] std::string markdown_table(const TitledTable& table);

}  // namespace isoscale::analysis::render
