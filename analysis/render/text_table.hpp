// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/render/text.hpp"

/// Tables as plain text, and the pieces of Markdown reports. All text in them is escaped already.
namespace isoscale::analysis {

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

}  // namespace isoscale::analysis
