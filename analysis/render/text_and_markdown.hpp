// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/render/text.hpp"

/// Defines tables of text cells, which plain text and Markdown share. All text in them is already
/// escaped.
namespace isoscale::analysis::render {

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

/// Draws a bar of `length` cells in eighths of a cell, with a mark after cell number `full` for the
/// ideal. Longer bars continue for at most `beyond` cells after the mark, then end in ">".
[[nodiscard]] std::string bar_to_mark(double length, int full, int beyond);

/// Returns escaped text in a form that Markdown shows unchanged.
[[nodiscard]] std::string literal(std::string_view text);
/// Returns a table in Markdown, below its title.
[[nodiscard]] std::string markdown_table(const TitledTable& table);

}  // namespace isoscale::analysis::render
