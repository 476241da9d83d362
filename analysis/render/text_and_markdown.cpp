// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/text_and_markdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

namespace isoscale::analysis::render {
namespace {

constexpr std::string_view column_gap = "  ";

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::size_t used = display_width(text);
  const std::string blanks(width > used ? width - used : 0, ' ');
  return align == Align::right ? blanks + text : text + blanks;
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

void TitledTable::add(std::vector<Cell> cells, std::string tail, std::size_t named) {
  const bool is_first = columns.empty();
  Row row{.cells = {}, .tail = std::move(tail)};
  for (Cell& cell : cells) {
    if (is_first) columns.push_back({std::move(cell.heading), cell.align});
    if (row.tail.empty() || row.cells.size() < named) row.cells.push_back(std::move(cell.text));
  }
  rows.push_back(std::move(row));
}

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
      text += column_gap;
      text += padded(cells[i], widths[i], columns[i].align);
    }
    if (!tail.empty()) {
      text += column_gap;
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

std::string literal(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      if (std::string_view{"\\`*_{}[]()#!|~>"}.find(c) != std::string_view::npos) result += '\\';
      result += c;
    }
  }
  return result;
}

std::string markdown_table(const TitledTable& table) {
  std::vector<std::size_t> shown;
  std::string names, rule;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].align == Align::drawing) continue;
    shown.push_back(i);
    names += " " + literal(table.columns[i].heading) + " |";
    rule += table.columns[i].align == Align::left ? "---|" : "---:|";
  }
  const bool remarked =
      std::ranges::any_of(table.rows, [](const Row& at) { return !at.tail.empty(); });
  if (remarked) {
    names += " notes |";
    rule += "---|";
  }
  std::string text = table.title.empty() ? "" : literal(table.title) + ":\n\n";
  text += "|" + names + "\n|" + rule + "\n";
  for (const Row& row : table.rows) {
    text += "|";
    for (const std::size_t i : shown) {
      text += " " + (i < row.cells.size() ? literal(row.cells[i]) : std::string{undefined}) + " |";
    }
    text += (remarked ? " " + literal(row.tail) + " |" : "") + "\n";
  }
  return text;
}

}  // namespace isoscale::analysis::render
