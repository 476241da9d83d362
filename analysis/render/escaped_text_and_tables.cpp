// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/escaped_text_and_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

#include "base/text.hpp"

namespace isoscale::analysis::render {
namespace {

constexpr bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; }

/// True for control characters, line and paragraph separators, code points that reorder or hide
/// text, and code points that are not characters.
constexpr bool is_unsafe(std::uint32_t c) {
  return c < 0x20U || (c >= 0x7fU && c <= 0x9fU) || c == 0xadU || c == 0x61cU ||
         (c >= 0x200bU && c <= 0x200fU) || (c >= 0x2028U && c <= 0x202eU) ||
         (c >= 0x2060U && c <= 0x206fU) || c == 0xfeffU || (c & 0xfffeU) == 0xfffeU ||
         c >= 0xe0000U;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Puts a CSV cell in quotes if it needs them, with quotes inside doubled (RFC 4180).
std::string in_quotes(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string result = "\"";
  for (const char c : cell) result += c == '"' ? std::string{"\"\""} : std::string{c};
  return result + "\"";
}

std::string csv_line(const std::vector<CsvCell>& cells, auto part) {
  return fmt::format("{}\n", fmt::join(cells | std::views::transform(part), ","));
}

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

std::string escape_up_to(std::string_view text, std::size_t most) {
  const std::size_t bytes = text.size();
  std::string result;
  result.reserve(std::min(bytes, most));
  for (std::size_t shown = 0; !text.empty(); ++shown) {
    if (shown == most) return result + fmt::format("… (of {} bytes)", bytes);
    const auto [length, point] = base::next_character(text);
    if (!point) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
    } else if (*point == '\n') {
      result += "\\n";
    } else if (*point == '\t') {
      result += "\\t";
    } else if (!is_unsafe(*point)) {
      result += text.substr(0, length);
    } else if (*point < 0x100U) {
      result += fmt::format("\\x{:02x}", *point);
    } else {
      result += fmt::format("\\u{:04x}", *point);
    }
    text.remove_prefix(length);
  }
  return result;
}

std::string escape(std::string_view text) { return escape_up_to(text, most_shown); }

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return !is_continuation(c); }));
}

std::vector<std::string_view> words_in(std::string_view list) {
  std::vector<std::string_view> words = base::split(list, ' ');
  std::erase(words, "");
  return words;
}

std::string shortened(const std::string& text, std::size_t columns) {
  if (display_width(text) <= columns) return text;
  std::size_t end = 0;
  for (std::size_t shown = 0; end < text.size(); ++end) {
    if (is_continuation(text[end])) continue;
    if (++shown == columns) break;
  }
  return without_trailing_blanks(text.substr(0, end)) + "…";
}

std::string in_lines(std::string_view text, std::size_t indent, std::size_t columns) {
  std::string lines, line;
  const auto flush = [&] {
    if (!line.empty()) lines += std::string(indent, ' ') + line + "\n";
    line.clear();
  };
  for (const std::string_view word : words_in(text)) {
    const bool is_full = indent + display_width(line) + 1 + display_width(word) > columns;
    if (is_full) flush();
    line += line.empty() ? "" : " ";
    line += word;
  }
  flush();
  return lines;
}

bool before_naturally(std::string_view a, std::string_view b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const auto number = [](std::string_view text, std::size_t& at) {
        while (at < text.size() && text[at] == '0') ++at;
        const std::size_t begin = at;
        while (at < text.size() && is_digit(text[at])) ++at;
        return text.substr(begin, at - begin);
      };
      const std::string_view one = number(a, i), other = number(b, j);
      if (one.size() != other.size()) return one.size() < other.size();
      if (one != other) return one < other;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;  // the names are equal up to leading zeros of numbers: "node02" and "node2"
}

std::string text_cell(std::string_view text) {
  std::string cell = escape_up_to(text, whole_text);
  if (!cell.empty() && std::string_view{"=+-@"}.find(cell.front()) != std::string_view::npos) {
    cell.insert(cell.begin(), '\'');
  }
  return in_quotes(cell);
}

std::string csv_heading(const std::vector<CsvCell>& cells) {
  return csv_line(cells, &CsvCell::first);
}

std::string csv_values(const std::vector<CsvCell>& cells) {
  return csv_line(cells, &CsvCell::second);
}

std::vector<std::size_t> widths_of(const TitledTable& table) {
  std::vector<std::size_t> widths;
  for (const Column& column : table.columns) widths.push_back(display_width(column.heading));
  for (const Row& row : table.rows) {
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row.cells[i]));
    }
  }
  return widths;
}

std::string plain_table(const TitledTable& table) {
  const std::vector<std::size_t> widths = widths_of(table);
  const auto line = [&](const std::vector<std::string>& cells, const std::string& tail) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      text += "  " + padded(cells[i], widths[i], table.columns[i].align);
    }
    return without_trailing_blanks(text + "  " + tail) + "\n";
  };
  std::vector<std::string> headings(table.columns.size());
  std::ranges::transform(table.columns, headings.begin(), &Column::heading);
  std::string text = table.title.empty() ? "" : "  " + table.title + "\n";
  if (!headings.empty()) text += line(headings, "");
  for (const Row& row : table.rows) text += line(row.cells, row.tail);
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
