// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/text_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "analysis/render/text_escape.hpp"

namespace isoscale::analysis {
namespace {

constexpr std::string_view gutter = "  ";

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::size_t used = display_width(text);
  const std::string blanks(width > used ? width - used : 0, ' ');
  return align == Align::left ? text + blanks : blanks + text;
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string table(const std::vector<Column>& columns, const std::vector<Row>& rows) {
  std::vector<std::string> headings(columns.size());
  std::ranges::transform(columns, headings.begin(), &Column::heading);
  std::vector<std::size_t> widths(columns.size());
  std::ranges::transform(headings, widths.begin(), display_width);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row.cells[i]));
    }
  }
  const auto line = [&](const std::vector<std::string>& cells, const std::string& tail) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      text += gutter;
      text += padded(cells[i], widths[i], columns[i].align);
    }
    if (!tail.empty()) {
      text += gutter;
      text += tail;
    }
    return without_trailing_blanks(text) + "\n";
  };
  std::string text = line(headings, "");
  for (const Row& row : rows) text += line(row.cells, row.tail);
  return text;
}

std::string bar_to_mark(double length, int full, int beyond) {
  constexpr std::array<std::string_view, 8> eighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  constexpr std::string_view mark = "│";
  const double most = full + beyond;
  const auto drawn = static_cast<int>(std::lround(std::clamp(length, 0.0, most) * 8));
  std::string text;
  for (int cell = 0; cell < full + beyond; ++cell) {
    if (cell == full) text += mark;
    const int filled = std::clamp(drawn - cell * 8, 0, 8);
    if (filled == 8) {
      text += "█";
    } else if (filled > 0) {
      text += eighths[static_cast<std::size_t>(filled)];
    } else {
      if (cell >= full) break;
      text += ' ';
    }
  }
  if (beyond == 0) text += mark;
  if (length > most) text += ">";
  return text;
}

}  // namespace isoscale::analysis
