// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/markdown_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace isoscale::analysis {

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
