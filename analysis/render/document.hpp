// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/render/text_and_markdown.hpp"
#include "analysis/unit.hpp"
#include "statistics/robust.hpp"

/// Represents a report as a list of parts, independent of how they are shown. Numbers stay numbers,
/// and texts stay as they are in run files: a writer formats, escapes, wraps and shortens them.
namespace isoscale::analysis::render {

/// The sections of the detailed report; the names are those of --detail.
enum class Section : std::uint8_t {
  curves,
  breakdown,
  efficiency,
  waterfall,
  pop,
  strategies,
  phases,
  layers,
  soak,
  nodes,
  devices,
  findings,
  warnings,
  preflight,
  rows,
  calibration,
  legend,
};
inline constexpr std::size_t section_count = 17;

struct SectionName {
  Section section;
  std::string_view name;
  std::string_view sentence;  ///< description of its content
};
/// Returns the names in the order of Section.
[[nodiscard]] std::span<const SectionName> section_names();

class Sections {
 public:
  /// Selects all sections.
  Sections() { wanted_.set(); }
  /// Parses "all", or names separated by commas. Throws base::UsageError that lists the names.
  [[nodiscard]] static Sections parse(std::string_view names);

  [[nodiscard]] bool has(Section section) const {
    return wanted_.test(static_cast<std::size_t>(section));
  }
  [[nodiscard]] bool are_all() const { return wanted_.all(); }

 private:
  std::bitset<section_count> wanted_;
};

/// Returns the section that has the remarks (lines below a curve) with this key, such as "soak" or
/// "MFU".
[[nodiscard]] Section section_of_remark(std::string_view key);

/// A cell is empty, a number (with its 95% interval if it has one), or words.
using Value = std::variant<std::monostate, statistics::Located, std::string>;

/// Says what a column may lose in a table that is too wide for the page: first the intervals of all
/// columns without `always` are dropped, then the columns with `if_it_fits`.
enum class Keep : std::uint8_t {
  always,
  without_interval,  ///< its numbers may lose their intervals
  if_it_fits,        ///< the whole column may go
};

struct DocumentColumn {
  std::string key;      ///< for programs: "step_time"
  std::string heading;  ///< for people: "step time"
  Unit unit = Unit::text;
  Keep keep = Keep::always;
};

struct DocumentTable {
  std::vector<DocumentColumn> columns;
  std::vector<std::vector<Value>> rows;  ///< each with one value per column
  std::string title{};                   ///< escaped; "" = without a title
};

enum class Underline : std::uint8_t { no, yes };

/// The title of a part; an empty line precedes every heading but the first.
struct Heading {
  std::string text;
  Underline underline = Underline::no;  ///< in plain text
};

enum class Lines : std::uint8_t { as_needed, one };

struct Paragraph {
  std::string text;
  Lines lines = Lines::as_needed;  ///< one: text that is too long is cut
};

/// A sentence after a short key, for example "WARNING" or "~13%", or after no key ("").
struct Note {
  std::string key, text;
  Lines lines = Lines::as_needed;
};

/// Facts and TitledTable hold text that is already escaped; writers escape the text of all other
/// blocks.
using Block =
    std::variant<Heading, Paragraph, std::vector<Note>, Facts, TitledTable, DocumentTable>;
using Document = std::vector<Block>;

/// Appends the blocks of `more`.
void append(Document& document, Document more);
/// These functions append the facts or the table, unless they are empty.
void append(Document& document, Facts facts);
void append(Document& document, TitledTable table);

/// Returns plain text in which no line is wider than `columns`. Exceptions are words that are
/// longer by themselves, and the blocks Facts and TitledTable, which are neither wrapped nor
/// shortened.
[[nodiscard]] std::string to_text(const Document& document, std::size_t columns);
/// Returns Markdown with all columns and intervals, without shortening. If the first block is a
/// heading, it becomes the title.
[[nodiscard]] std::string to_markdown(const Document& document);

// These functions make plain text for reports that are not yet documents.

/// Returns one fact per line, indented by two, with the keys in a column.
[[nodiscard]] std::string lines(const Facts& facts);
/// Returns the underlined title of a part of a report, after an empty line.
[[nodiscard]] std::string heading(const std::string& title);

/// Returns escaped text in lines of at most `columns` columns, each after the indent; a longer word
/// has a line of its own. Returns no line for empty text.
[[nodiscard]] std::string in_lines(const std::string& text, std::size_t indent,
                                   std::size_t columns);
/// Returns escaped text of at most `columns` columns, with "…" at the end where it was longer.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t columns);

/// Returns the table below its title, both indented by two.
[[nodiscard]] std::string titled(const TitledTable& part);

/// Describes one figure of an Item (a point, a curve, a row); all reports use this description.
template <class Item>
struct Metric {
  std::string_view key;      ///< for programs: "step_time"
  std::string_view heading;  ///< for people: "step time"
  Unit unit = Unit::text;
  std::string_view sentence;    ///< meaning, for legends
  Value (*value)(const Item&);  ///< in SI units; empty where it is undefined
  Keep keep = Keep::always;
};

/// Returns a cell of words; empty for an empty text.
[[nodiscard]] inline Value words(std::string text) {
  return text.empty() ? Value{} : Value{std::move(text)};
}
/// Returns a cell of a number; empty for an absent number.
[[nodiscard]] inline Value number(const std::optional<statistics::Located>& at) {
  return at ? Value{*at} : Value{};
}

/// Returns a table with a row for each item, and a column for each metric for which at least one
/// item has a value.
template <class Item>
[[nodiscard]] DocumentTable table_of(std::span<const Metric<Item>> metrics,
                                     std::span<const Item> items) {
  DocumentTable table{.columns = {}, .rows = std::vector<std::vector<Value>>(items.size())};
  for (const Metric<Item>& metric : metrics) {
    std::vector<Value> values;
    bool any = false;
    for (const Item& item : items) {
      values.push_back(metric.value(item));
      any = any || !std::holds_alternative<std::monostate>(values.back());
    }
    if (!any) continue;
    table.columns.push_back({.key = std::string{metric.key},
                             .heading = std::string{metric.heading},
                             .unit = metric.unit,
                             .keep = metric.keep});
    for (std::size_t i = 0; i < items.size(); ++i) table.rows[i].push_back(std::move(values[i]));
  }
  return table;
}

/// Returns "heading: sentence" for each metric.
template <class Item>
[[nodiscard]] std::vector<Note> legend_of(std::span<const Metric<Item>> metrics) {
  std::vector<Note> notes;
  for (const Metric<Item>& metric : metrics) {
    notes.push_back({.key = std::string{metric.heading}, .text = std::string{metric.sentence}});
  }
  return notes;
}

}  // namespace isoscale::analysis::render
