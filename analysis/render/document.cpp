// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/document.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <iterator>

#include "analysis/render/cells.hpp"
#include "analysis/render/text.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace isoscale::analysis::render {
namespace {

constexpr std::array<SectionName, section_count> all_names{{
    {Section::curves, "curves", "each curve: step time, throughput and efficiency of every point"},
    {Section::breakdown, "breakdown", "where a traced step went: compute, transfer, waiting ..."},
    {Section::efficiency, "efficiency", "speed-up and efficiency with intervals, serial fractions"},
    {Section::waterfall, "waterfall",
     "time lost by cause, from the ideal step to the measured one"},
    {Section::pop, "pop", "the efficiency tree of the POP Centre of Excellence"},
    {Section::strategies, "strategies", "pipeline bubbles, offloading, uneven shares"},
    {Section::phases, "phases", "traced steps by phase, mesh axis and GEMM shape"},
    {Section::layers, "layers", "traced steps by layer"},
    {Section::soak, "soak", "steps replayed and compared bit by bit"},
    {Section::nodes, "nodes", "which mesh axes cross nodes"},
    {Section::devices, "devices", "clocks, temperature, power and energy"},
    {Section::findings, "findings", "what was found, most severe first, with the next step"},
    {Section::warnings, "warnings", "all warnings of the run and its files"},
    {Section::preflight, "preflight", "what the checks before the run found"},
    {Section::rows, "rows", "micro-benchmarks, inference and serving"},
    {Section::calibration, "calibration", "latency, bandwidth and ceilings fitted to the rows"},
    {Section::legend, "legend", "what the words and columns mean"},
}};

constexpr std::size_t gutter = 2;
constexpr std::size_t narrowest = 5;  ///< the least width of a shortened cell, in columns

enum class Intervals : std::uint8_t { shown, left_out };

std::string number_text(const statistics::Located& at, Unit unit, Intervals intervals) {
  std::string text = value_text(at.value, unit);
  if (intervals == Intervals::left_out || !at.lower || !at.upper) return text;
  if (unit != Unit::share) return text + " " + interval_text(at);
  return text +
         fmt::format(" ({} to {})", value_text(*at.lower, unit), value_text(*at.upper, unit));
}

/// Returns the number that a JSON number, or an object with an interval, is.
std::optional<statistics::Located> number_in(const Json& json) {
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
  if (const auto* const words = std::get_if<std::string>(&value)) return escape(*words);
  if (const auto* const number = std::get_if<statistics::Located>(&value)) {
    return number_text(*number, unit, intervals);
  }
  if (const auto* const json = std::get_if<Json>(&value)) {
    if (const auto number = number_in(*json)) return number_text(*number, unit, intervals);
    if (json->is_string()) return escape(json->get<std::string>());
    if (json->is_boolean()) return json->get<bool>() ? "yes" : "NO";
    std::vector<std::string> parts;
    if (json->is_array()) {
      const Unit of_parts = unit == Unit::text ? Unit::count : unit;
      for (const Json& part : *json) parts.push_back(cell_text(part, of_parts, intervals));
    }
    if (!parts.empty()) return fmt::format("{}", fmt::join(parts, ", "));
  }
  return unit == Unit::text ? "" : std::string{undefined};
}

/// True if no number follows the cells that identify a row.
bool is_without_figure(const DocumentTable& table, std::size_t row) {
  for (std::size_t i = table.named; i < table.columns.size(); ++i) {
    const bool is_figure = table.columns[i].unit != Unit::text;
    if (is_figure && !is_absent(table.rows[row][i])) return false;
  }
  return true;
}

std::size_t width_of(const TitledTable& table, std::size_t column) {
  std::size_t widest = display_width(table.columns[column].heading);
  for (const Row& row : table.rows) {
    if (column < row.cells.size()) widest = std::max(widest, display_width(row.cells[column]));
  }
  return widest;
}

std::size_t width_of(const TitledTable& table) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < table.columns.size(); ++i) sum += gutter + width_of(table, i);
  return sum;
}

/// Returns the table as text cells. Columns are left out if their `keep` comes after `kept` in
/// Keep.
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

/// Shortens the widest column of words repeatedly, until all columns fit or none can be shortened.
void shorten(TitledTable& table, std::size_t columns) {
  while (width_of(table) > columns) {
    std::optional<std::size_t> widest;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      if (table.columns[i].align != Align::left) continue;
      if (!widest || width_of(table, i) > width_of(table, *widest)) widest = i;
    }
    if (!widest || width_of(table, *widest) <= narrowest) return;
    const std::size_t excess = width_of(table) - columns;
    const std::size_t now = width_of(table, *widest);
    // One round shortens a column by a quarter at most, so that columns of similar width share the
    // loss.
    const std::size_t to = std::max(narrowest, now - std::min(excess, now / 4));
    table.columns[*widest].heading = shortened(table.columns[*widest].heading, to);
    for (Row& row : table.rows) {
      if (*widest < row.cells.size()) row.cells[*widest] = shortened(row.cells[*widest], to);
    }
  }
}

std::string table_text(const DocumentTable& table, std::size_t columns) {
  TitledTable text = as_text(table);
  if (table.width == Width::as_needed) return titled(text);
  if (width_of(text) > columns) text = text_table(table, Intervals::left_out, Keep::if_it_fits);
  if (width_of(text) > columns)
    text = text_table(table, Intervals::left_out, Keep::without_interval);
  shorten(text, columns);
  return titled(text);
}

/// Returns the text wrapped, or cut to one line.
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
    // The key replaces part of the indent of the first line.
    const std::string key = escape(note.key);
    lines.replace(gutter, display_width(key), key);
    text += lines;
  }
  return text;
}

}  // namespace

std::span<const SectionName> section_names() { return all_names; }

Sections Sections::parse(std::string_view names) {
  Sections wanted;
  if (names == "all") return wanted;
  wanted.wanted_.reset();
  while (true) {
    const std::string_view name = names.substr(0, names.find(','));
    const auto known = std::ranges::find(all_names, name, &SectionName::name);
    if (known == all_names.end()) {
      std::vector<std::string_view> accepted;
      for (const SectionName& at : all_names) accepted.push_back(at.name);
      throw base::UsageError(fmt::format(
          "--detail has no section {}{}; the sections are {}, or all", base::quoted(name),
          base::did_you_mean(name, accepted), fmt::join(accepted, ", ")));
    }
    wanted.wanted_.set(static_cast<std::size_t>(known->section));
    if (name.size() == names.size()) return wanted;
    names.remove_prefix(name.size() + 1);
  }
}

Section section_of_remark(std::string_view key) {
  constexpr std::array<std::pair<std::string_view, Section>, 9> known{{
      {"baseline", Section::efficiency},
      {"serial", Section::efficiency},
      {"Amdahl", Section::efficiency},
      {"Gustafson", Section::efficiency},
      {"USL", Section::efficiency},
      {"axes", Section::nodes},
      {"soak", Section::soak},
      {"lost", Section::waterfall},
      {"cause", Section::waterfall},
  }};
  const auto found = std::ranges::find(known, key, &std::pair<std::string_view, Section>::first);
  return found == known.end() ? Section::curves : found->second;
}

void append(Document& document, Document more) {
  std::ranges::move(more, std::back_inserter(document));
}

void append(Document& document, Facts facts) {
  if (!facts.empty()) document.emplace_back(std::move(facts));
}

void append(Document& document, DocumentTable table) {
  if (!table.rows.empty()) document.emplace_back(std::move(table));
}

bool is_absent(const Value& value) {
  const auto* const json = std::get_if<Json>(&value);
  if (json == nullptr) return std::holds_alternative<std::monostate>(value);
  return json->is_null() ||
         (json->is_object() && json->contains("median") && (*json)["median"].is_null());
}

std::string located_text(const statistics::Located& at, Unit unit) {
  return number_text(at, unit, Intervals::shown);
}

std::string text_of(const Value& value, Unit unit) {
  return cell_text(value, unit, Intervals::left_out);
}

Json json_of(const Value& value) {
  if (const auto* const words = std::get_if<std::string>(&value)) return *words;
  if (const auto* const number = std::get_if<statistics::Located>(&value)) {
    return number_or_null(number->value);
  }
  const auto* const json = std::get_if<Json>(&value);
  return json == nullptr ? Json{} : *json;
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

std::string lines(const Facts& facts) {
  std::string text;
  for (const auto& [key, value] : facts) {
    text += fmt::format("  {}{:{}} {}\n", key, "", 8 - std::min<std::size_t>(8, display_width(key)),
                        value);
  }
  return text;
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

std::string titled(const TitledTable& part) {
  return (part.title.empty() ? "" : "  " + part.title + "\n") + table(part.columns, part.rows);
}

}  // namespace isoscale::analysis::render
