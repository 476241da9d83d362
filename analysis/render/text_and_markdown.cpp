// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/text_and_markdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>

namespace isoscale::analysis {
namespace {

constexpr std::string_view column_gap = "  ";

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

std::string markdown_row(const MarkdownCells& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + literal(cell) + " |";
  return text + "\n";
}

std::string markdown_heading(const MarkdownCells& names, const std::vector<std::size_t>& left) {
  std::string rule = "|";
  for (std::size_t i = 0; i < names.size(); ++i) {
    rule += std::ranges::find(left, i) == left.end() ? "---:|" : "---|";
  }
  return markdown_row(names) + rule + "\n";
}

std::string markdown_list(const Facts& facts) {
  std::string text;
  for (const auto& [key, value] : facts) text += fmt::format("- {}: {}\n", key, literal(value));
  return text;
}

std::string markdown_tables(const std::vector<TitledTable>& tables) {
  std::string text;
  for (const TitledTable& part : tables) {
    MarkdownCells names;
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < part.columns.size(); ++i) {
      names.push_back(part.columns[i].heading);
      if (part.columns[i].align == Align::left) left.push_back(i);
    }
    const bool remarked =
        std::ranges::any_of(part.rows, [](const Row& at) { return !at.tail.empty(); });
    if (remarked) {
      left.push_back(names.size());
      names.emplace_back("notes");
    }
    text += fmt::format("\n{}:\n\n", literal(part.title)) + markdown_heading(names, left);
    for (const Row& at : part.rows) {
      MarkdownCells cells = at.cells;
      cells.resize(part.columns.size(), std::string{undefined});
      if (remarked) cells.push_back(at.tail);
      text += markdown_row(cells);
    }
  }
  return text;
}

}  // namespace isoscale::analysis
