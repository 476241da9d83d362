// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Handles text in reports: escaping, order of names, comma-separated values, and tables of text
/// cells in plain text and Markdown.
namespace isoscale::analysis::render {

/// The largest number of characters that reports for people show of one text. Only texts from files
/// can be longer.
inline constexpr std::size_t most_shown = 1000;
/// The limit for texts in reports for programs, which are never cut.
inline constexpr std::size_t whole_text = std::string_view::npos;

/// Returns `text` in a form that is safe for a terminal. Anything that could move the cursor,
/// change colours, reorder or hide other text (control characters, direction marks, bytes that are
/// not UTF-8) is written as \n, \x1b, \u202e. Text of more than `most_shown` characters is cut,
/// and its size is added: "xxx… (of 1048576 bytes)".
[[nodiscard]] std::string escape(std::string_view text);
/// Escapes text as escape() does, with the limit `most`.
[[nodiscard]] std::string escape_up_to(std::string_view text, std::size_t most);

/// Returns the number of columns that escaped text takes on a terminal, which is its number of code
/// points; wide characters count as one column.
[[nodiscard]] std::size_t display_width(std::string_view text);

/// Returns escaped text of at most `columns` columns, with "…" at the end where it was longer.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t columns);
/// Returns the words of a list that blanks separate.
[[nodiscard]] std::vector<std::string_view> words_in(std::string_view list);
/// Returns escaped text in lines of at most `columns` columns, each after the indent; a longer word
/// has a line of its own. Returns no line for empty text.
[[nodiscard]] std::string in_lines(std::string_view text, std::size_t indent, std::size_t columns);

/// True if `a` comes before `b` when digits in names are compared as numbers: node2 before node10.
[[nodiscard]] bool before_naturally(std::string_view a, std::string_view b);

/// The text of a cell without a value.
inline constexpr std::string_view undefined = "—";

/// Lines of a report, each with a key and a sentence.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// The name of a CSV column, and the text of one line in this column. Lines follow RFC 4180 and are
/// safe in a spreadsheet and on a terminal.
using CsvCell = std::pair<std::string_view, std::string>;

/// Returns the text of a CSV cell, escaped as escape() does but never cut. An apostrophe precedes a
/// text that begins with =, +, - or @, which a spreadsheet would take for a formula.
[[nodiscard]] std::string text_cell(std::string_view text);

[[nodiscard]] std::string csv_heading(const std::vector<CsvCell>& cells);
[[nodiscard]] std::string csv_values(const std::vector<CsvCell>& cells);

// The following are tables, whose text is already escaped.

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
  std::vector<std::string> cells;  ///< may be fewer than there are columns
  std::string tail{};              ///< follows the last cell, over the remaining columns
};

struct TitledTable {
  std::string title{};  ///< "" = without a title
  std::vector<Column> columns{};
  std::vector<Row> rows{};
};

/// Returns the widths of the columns, which are those of their widest heading or cell.
[[nodiscard]] std::vector<std::size_t> widths_of(const std::vector<Column>& columns,
                                                 const std::vector<Row>& rows);
/// Returns columns separated by two blanks, indented by two; lines do not end in blanks.
[[nodiscard]] std::string table(const std::vector<Column>& columns, const std::vector<Row>& rows);

/// Returns escaped text in a form that Markdown shows unchanged.
[[nodiscard]] std::string literal(std::string_view text);
/// Returns a table in Markdown, below its title.
[[nodiscard]] std::string markdown_table(const TitledTable& table);

}  // namespace isoscale::analysis::render
