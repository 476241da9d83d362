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

/// The pieces that reports are written with: escaping, tables and lines of plain text, Markdown,
/// and comma-separated values.
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

enum class Align : std::uint8_t { left, right };

struct Column {
  std::string heading;
  Align align = Align::right;
};

struct Row {
  std::vector<std::string> cells;  ///< may be fewer than there are columns
  std::string tail;                ///< stands behind the last cell, over the columns left free
};

struct TitledTable {
  std::string title;
  std::vector<Column> columns;
  std::vector<Row> rows;
};

/// Columns two blanks apart, indented by two; no blanks at the ends of lines.
[[nodiscard]] std::string table(const std::vector<Column>& columns, const std::vector<Row>& rows);

/// `length` of `full` cells drawn in eighths, with a mark behind cell number `full`: a bar beside
/// its ideal. Longer bars go past the mark for at most `beyond` cells, then end in ">".
[[nodiscard]] std::string bar_to_mark(double length, int full, int beyond);

/// Stands in a cell for a number that is not defined.
inline constexpr std::string_view undefined = "—";

/// Lines of a report, each a key and a sentence.
using Facts = std::vector<std::pair<std::string, std::string>>;
/// One fact a line, indented by two, its key in a column.
[[nodiscard]] std::string lines(const Facts& facts);
[[nodiscard]] std::string titled(const TitledTable& part);
/// A title of a part of a report, underlined; an empty line before it.
[[nodiscard]] std::string heading(const std::string& title);

/// Escaped text in lines of at most `columns`, each after the indent; a word that is longer has a
/// line of its own. No line for no text.
[[nodiscard]] std::string in_lines(const std::string& text, std::size_t indent,
                                   std::size_t columns);
/// Escaped text of at most `columns` columns, with "…" at its end where it was longer.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t columns);

using MarkdownCells = std::vector<std::string>;

/// `text`, escaped already, such that markdown shows it as it is.
[[nodiscard]] std::string literal(std::string_view text);
[[nodiscard]] std::string markdown_row(const MarkdownCells& cells);
/// Heading and rule of a table whose columns are numbers but for those named in `left`.
[[nodiscard]] std::string markdown_heading(const MarkdownCells& names,
                                           const std::vector<std::size_t>& left);
[[nodiscard]] std::string markdown_list(const Facts& facts);
/// Each with its title above.
[[nodiscard]] std::string markdown_tables(const std::vector<TitledTable>& tables);

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
