// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/render/text.hpp"

/// Tables as plain text, and elements of Markdown reports. All text in them is escaped already.
namespace isoscale::analysis {

enum class Align : std::uint8_t { left, right };

struct Column {
  std::string heading;
  Align align = Align::right;
};

struct Row {
  std::vector<std::string> cells;  ///< may be fewer than there are columns
  std::string tail;                ///< follows the last cell, over the remaining columns
};

struct TitledTable {
  std::string title;
  std::vector<Column> columns;
  std::vector<Row> rows;
};

/// Returns columns separated by two blanks, indented by two; lines do not end in blanks.
[[nodiscard]] std::string table(const std::vector<Column>& columns, const std::vector<Row>& rows);

/// Draws a bar of `length` cells in eighths of a cell, with a mark after cell number `full` for the
/// ideal. Longer bars continue for at most `beyond` cells after the mark, then end in ">".
[[nodiscard]] std::string bar_to_mark(double length, int full, int beyond);

using MarkdownCells = std::vector<std::string>;

/// Returns escaped text in a form that Markdown shows unchanged.
[[nodiscard]] std::string literal(std::string_view text);
[[nodiscard]] std::string markdown_row(const MarkdownCells& cells);
/// Returns heading and rule of a table; columns are right-aligned for numbers, except those listed
/// in `left`.
[[nodiscard]] std::string markdown_heading(const MarkdownCells& names,
                                           const std::vector<std::size_t>& left);
[[nodiscard]] std::string markdown_list(const Facts& facts);
/// Returns each table below its title.
[[nodiscard]] std::string markdown_tables(const std::vector<TitledTable>& tables);

}  // namespace isoscale::analysis
