// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/text_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

#include "analysis/render/text_escape.hpp"

namespace isoscale::analysis {
namespace {

constexpr int bar_width = 20;
constexpr int bar_beyond = 4;  // an efficiency of up to 120% is drawn

}  // namespace

std::string lines(const Facts& facts) {
  std::string text;
  for (const auto& [key, value] : facts) {
    text += fmt::format("  {}{:{}} {}\n", key, "", 8 - std::min<std::size_t>(8, display_width(key)),
                        value);
  }
  return text;
}

std::string titled(const TitledTable& part) {
  return "  " + part.title + "\n" + table(part.columns, part.rows);
}

std::string heading(const std::string& title) {
  std::string text = fmt::format("\n{}\n", title);
  for (std::size_t i = display_width(title); i > 0; --i) text += "─";
  return text + "\n";
}

std::string in_lines(const std::string& text, std::size_t indent, std::size_t columns) {
  std::string lines, line;
  const auto flush = [&] {
    if (!line.empty()) lines += std::string(indent, ' ') + line + "\n";
    line.clear();
  };
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    if (word.empty()) continue;
    const bool full =
        indent + display_width(line) + 1 + display_width(word) > columns && !line.empty();
    if (full) flush();
    line += (line.empty() ? "" : " ") + word;
  }
  flush();
  return lines;
}

std::string shortened(const std::string& text, std::size_t columns) {
  if (display_width(text) <= columns) return text;
  const auto is_continuation = [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;
  };
  std::size_t end = 0;
  for (std::size_t shown = 0; end < text.size(); ++end) {
    if (is_continuation(text[end])) continue;
    if (++shown == columns) break;
  }
  std::string result = text.substr(0, end);
  result.erase(result.find_last_not_of(' ') + 1);
  return result + "…";
}

std::string breakdown_bar(const Breakdown& parts) {
  constexpr std::size_t count = 7;
  std::array<double, count> exact{};
  std::array<int, count> cells{};
  for (std::size_t i = 0; i < count; ++i) {
    exact[i] = std::max(0.0, parts.*categories()[i].seconds);
  }
  const double sum = std::reduce(exact.begin(), exact.end());
  if (!(sum > 0)) return "";
  for (std::size_t i = 0; i < count; ++i) {
    exact[i] *= bar_width / sum;
    cells[i] = static_cast<int>(exact[i]);
  }
  while (std::reduce(cells.begin(), cells.end()) < bar_width) {
    std::size_t neediest = 0;
    for (std::size_t i = 1; i < count; ++i) {
      if (exact[i] - cells[i] > exact[neediest] - cells[neediest]) neediest = i;
    }
    ++cells[neediest];
  }
  std::string bar;
  for (std::size_t i = 0; i < count; ++i) {
    for (int cell = 0; cell < cells[i]; ++cell) bar += categories()[i].glyph;
  }
  return bar;
}

std::string efficiency_bar(double efficiency) {
  return bar_to_mark(efficiency * bar_width, bar_width, bar_beyond);
}

std::string efficiency_heading() {
  return fmt::format("{:<{}}{:<{}}{:>{}}", "0%", bar_width / 2 - 1, "50%", bar_width / 4, "ideal│",
                     bar_width / 4 + 2);
}

}  // namespace isoscale::analysis
