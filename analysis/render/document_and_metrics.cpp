// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/document_and_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "analysis/render/table_cells.hpp"
#include "base/text.hpp"

namespace isoscale::analysis::render {
namespace {

/// The number of blanks in an indent, and between two columns of a table.
constexpr std::size_t gutter = 2;
constexpr std::size_t narrowest = 5;  ///< a cell is not shortened below this number of characters

enum class Intervals : std::uint8_t { shown, left_out };

std::string number_text(const statistics::Located& at, Unit unit, Intervals intervals) {
  std::string text = value_text(at.value, unit);
  if (intervals == Intervals::left_out || !at.lower || !at.upper) return text;
  if (unit != Unit::share) return text + " " + interval_text(at);
  return text +
         fmt::format(" ({} to {})", value_text(*at.lower, unit), value_text(*at.upper, unit));
}

/// Returns the number in a JSON value: the value itself, or the entry `value` or `median` of an
/// object with the bounds of its interval. Absent if the JSON value contains no number.
std::optional<statistics::Located> number_in(const Value& json) {
  const auto part = [&json](const char* key) {
    const auto found = json.find(key);
    const bool is_known = found != json.end() && found->is_number();
    return is_known ? std::optional{found->get<double>()} : std::nullopt;
  };
  if (json.is_number()) return statistics::Located{json.get<double>()};
  if (!json.is_object()) return std::nullopt;
  const auto value = part("value"), median = part("median");
  if (!value && !median) return std::nullopt;
  return statistics::Located{value ? *value : *median, part("lower"), part("upper")};
}

std::string cell_text(const Value& value, Unit unit, Intervals intervals) {
  if (const auto number = number_in(value)) return number_text(*number, unit, intervals);
  if (value.is_string()) return escape(value.get<std::string>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "NO";
  if (value.is_array() && !value.empty()) {
    const Unit of_parts = unit == Unit::text ? Unit::count : unit;
    std::vector<std::string> parts;
    for (const Value& part : value) parts.push_back(cell_text(part, of_parts, intervals));
    return base::listed(parts);
  }
  return unit == Unit::text ? "" : std::string{undefined};
}

/// True if the row has no number after the cells that identify it.
bool is_without_figure(const DocumentTable& table, std::size_t row) {
  for (std::size_t i = table.named; i < table.columns.size(); ++i) {
    const bool is_figure = table.columns[i].unit != Unit::text;
    if (is_figure && !is_absent(table.rows[row][i])) return false;
  }
  return true;
}

std::size_t width_of(const TitledTable& table) {
  const std::vector<std::size_t> widths = widths_of(table);
  return std::reduce(widths.begin(), widths.end(), gutter * widths.size());
}

/// Returns the table as text cells. Columns whose `keep` comes after `kept` in the enumeration Keep
/// are left out, except drawings.
TitledTable text_table(const DocumentTable& table, Intervals intervals, Keep kept) {
  TitledTable text{.title = escape(table.title), .columns = {}, .rows = {}};
  text.rows.resize(table.rows.size());
  for (std::size_t row = 0; row < table.reasons.size(); ++row) {
    text.rows[row].tail = escape(table.reasons[row]);
  }
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const DocumentColumn& column = table.columns[i];
    if (column.keep > kept && column.keep != Keep::drawing) continue;
    const Align align = column.keep == Keep::drawing ? Align::drawing
                        : column.unit == Unit::text  ? Align::left
                                                     : Align::right;
    text.columns.push_back({escape(column.heading), align});
    const Intervals shown = column.keep == Keep::value_only ? Intervals::left_out
                            : column.keep == Keep::always   ? Intervals::shown
                                                            : intervals;
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      const bool has_figure = !is_without_figure(table, row);
      if (!text.rows[row].tail.empty() && i >= table.named && !has_figure) continue;
      text.rows[row].cells.push_back(cell_text(table.rows[row][i], column.unit, shown));
    }
  }
  return text;
}

/// Shortens the widest text column repeatedly, until the table fits or no column can be shortened.
void shorten(TitledTable& table, std::size_t columns) {
  for (std::size_t whole = width_of(table); whole > columns; whole = width_of(table)) {
    std::vector<std::size_t> widths = widths_of(table);
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (table.columns[i].align != Align::left) widths[i] = 0;
    }
    const auto widest = std::ranges::max_element(widths);
    if (widest == widths.end() || *widest <= narrowest) return;
    // One round shortens a column by a quarter at most, so that columns of similar width are
    // shortened together.
    const std::size_t to = std::max(narrowest, *widest - std::min(whole - columns, *widest / 4));
    const auto place = static_cast<std::size_t>(widest - widths.begin());
    table.columns[place].heading = shortened(table.columns[place].heading, to);
    for (Row& row : table.rows) {
      if (place < row.cells.size()) row.cells[place] = shortened(row.cells[place], to);
    }
  }
}

/// Returns one fact per line, indented by two, with the values aligned after the keys.
std::string lines(const Facts& facts) {
  std::string text;
  for (const auto& [key, value] : facts) {
    text += fmt::format("  {}{:{}} {}\n", key, "", 8 - std::min<std::size_t>(8, display_width(key)),
                        value);
  }
  return text;
}

/// Returns the underlined title of a part of a report, after an empty line.
std::string heading(const std::string& title) {
  std::string text = fmt::format("\n{}\n", title);
  for (std::size_t i = display_width(title); i > 0; --i) text += "─";
  return text + "\n";
}

std::string table_text(const DocumentTable& table, std::size_t columns) {
  TitledTable text = as_text(table);
  if (table.width == Width::as_needed) return plain_table(text);
  if (width_of(text) > columns) text = text_table(table, Intervals::left_out, Keep::if_it_fits);
  if (width_of(text) > columns) {
    text = text_table(table, Intervals::left_out, Keep::without_interval);
  }
  shorten(text, columns);
  return plain_table(text);
}

/// Returns the text wrapped to the width of the page, or cut to one line.
std::string laid_out(const std::string& text, Lines lines, std::size_t indent,
                     std::size_t columns) {
  const std::string words = escape(text);
  if (lines == Lines::as_needed && !words.empty()) return in_lines(words, indent, columns);
  return std::string(indent, ' ') + shortened(words, columns > indent ? columns - indent : 1) +
         "\n";
}

std::string notes_text(const std::vector<Note>& notes, std::size_t columns) {
  std::size_t key_width = 0;
  for (const Note& note : notes) key_width = std::max(key_width, display_width(escape(note.key)));
  const std::size_t indent = gutter + key_width + (key_width == 0 ? 0 : gutter);
  std::string text;
  for (const Note& note : notes) {
    std::string lines = laid_out(note.text, note.lines, indent, columns);
    // The key replaces blanks in the first line's indent.
    const std::string key = escape(note.key);
    lines.replace(gutter, display_width(key), key);
    text += lines;
  }
  return text;
}

}  // namespace

void append(Document& document, Document more) {
  std::ranges::move(more, std::back_inserter(document));
}

void append(Document& document, Facts facts) {
  if (!facts.empty()) document.emplace_back(std::move(facts));
}

void append(Document& document, DocumentTable table) {
  if (!table.rows.empty()) document.emplace_back(std::move(table));
}

void append(Document& document, std::vector<DocumentTable> tables) {
  for (DocumentTable& table : tables) append(document, std::move(table));
}

void append_sentences(Document& document, const std::vector<std::string>& sentences) {
  for (const std::string& sentence : sentences) document.emplace_back(Paragraph{sentence});
}

void append(Facts& facts, Facts more) { std::ranges::move(more, std::back_inserter(facts)); }

bool is_absent(const Value& value) {
  return value.is_null() ||
         (value.is_object() && value.contains("median") && value["median"].is_null());
}

std::string located_text(const statistics::Located& at, Unit unit) {
  return number_text(at, unit, Intervals::shown);
}

std::string text_of(const Value& value, Unit unit) {
  return cell_text(value, unit, Intervals::left_out);
}

void add_column(DocumentTable& table, DocumentColumn column, std::vector<Value> values) {
  if (std::ranges::all_of(values, is_absent)) return;
  table.columns.push_back(std::move(column));
  for (std::size_t i = 0; i < values.size(); ++i) table.rows[i].push_back(std::move(values[i]));
}

void add_columns(DocumentTable& table, DocumentTable more) {
  std::ranges::move(more.columns, std::back_inserter(table.columns));
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    std::ranges::move(more.rows[i], std::back_inserter(table.rows[i]));
  }
}

void add_row(DocumentTable& table, std::vector<Cell> cells) {
  const bool is_first = table.rows.empty();
  std::vector<Value>& row = table.rows.emplace_back();
  table.width = Width::as_needed;
  for (Cell& cell : cells) {
    if (is_first) table.columns.push_back({"", std::move(cell.heading), cell.unit});
    row.push_back(std::move(cell.value));
  }
}

TitledTable as_text(const DocumentTable& table) {
  return text_table(table, Intervals::shown, Keep::if_it_fits);
}

std::string to_text(const Document& document, std::size_t columns) {
  struct Writer {
    std::size_t columns;
    std::string operator()(const Heading& at) const {
      return at.underline == Underline::yes ? heading(escape(at.text))
                                            : "\n" + in_lines(escape(at.text), 0, columns);
    }
    std::string operator()(const Paragraph& at) const {
      return laid_out(at.text, at.lines, 0, columns);
    }
    std::string operator()(const std::vector<Note>& at) const { return notes_text(at, columns); }
    std::string operator()(const Facts& at) const { return lines(at); }
    std::string operator()(const DocumentTable& at) const { return table_text(at, columns); }
  };
  std::string text;
  bool below_heading = true;
  for (const Block& block : document) {
    const auto* const numbers = std::get_if<DocumentTable>(&block);
    const bool is_part =
        std::holds_alternative<Facts>(block) ||
        (numbers != nullptr && (!numbers->title.empty() || numbers->width == Width::as_needed));
    if (is_part && !below_heading) text += "\n";
    text += std::visit(Writer{columns}, block);
    below_heading = std::holds_alternative<Heading>(block);
  }
  return text.starts_with('\n') ? text.substr(1) : text;
}

std::string to_markdown(const Document& document) {
  struct Writer {
    bool is_first;
    std::string operator()(const Heading& at) const {
      if (at.text.empty()) return "";
      return fmt::format("{} {}\n", is_first ? "##" : "###", literal(escape(at.text)));
    }
    std::string operator()(const Paragraph& at) const { return literal(escape(at.text)) + "\n"; }
    std::string operator()(const std::vector<Note>& notes) const {
      std::string text;
      for (const Note& note : notes) {
        const std::string key = note.key.empty() ? "" : literal(escape(note.key)) + ": ";
        text += fmt::format("- {}{}\n", key, literal(escape(note.text)));
      }
      return text;
    }
    std::string operator()(const Facts& facts) const {
      std::string text;
      for (const auto& [key, value] : facts) text += fmt::format("- {}: {}\n", key, literal(value));
      return text;
    }
    std::string operator()(const DocumentTable& at) const { return markdown_table(as_text(at)); }
  };
  std::string text;
  for (const Block& block : document) text += std::visit(Writer{text.empty()}, block) + "\n";
  return text;
}

}  // namespace isoscale::analysis::render
