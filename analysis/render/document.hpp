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

#include "analysis/render/text_table.hpp"
#include "analysis/unit.hpp"
#include "statistics/robust.hpp"

/// A report as parts that know nothing of how they are shown. Numbers stay numbers and texts stay
/// as they are in run files: a writer formats, escapes, wraps and shortens them.
namespace isoscale::analysis {

/// The sections of the detailed report, which --detail names.
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
  std::string_view sentence;  ///< what it shows
};
/// In the order of Section.
[[nodiscard]] std::span<const SectionName> section_names();

class Sections {
 public:
  /// All of them.
  Sections() { wanted_.set(); }
  /// "all", or names with commas between them. Throws base::UsageError that lists the names.
  [[nodiscard]] static Sections parse(std::string_view names);

  [[nodiscard]] bool has(Section section) const {
    return wanted_.test(static_cast<std::size_t>(section));
  }
  [[nodiscard]] bool are_all() const { return wanted_.all(); }

 private:
  std::bitset<section_count> wanted_;
};

/// The section of a line below a curve, by its key: "soak", "lost", "MFU".
[[nodiscard]] Section section_of_remark(std::string_view key);

/// A cell holds nothing, a number with its 95% interval where it has one, or words.
using Value = std::variant<std::monostate, statistics::Located, std::string>;

/// A table that is too wide for the page loses these parts, the last of this list first.
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
  std::vector<std::vector<Value>> rows;  ///< each as long as `columns`
};

/// A title of a part; an empty line before it.
struct Heading {
  std::string text;
};

enum class Lines : std::uint8_t { as_needed, one };

struct Paragraph {
  std::string text;
  Lines lines = Lines::as_needed;  ///< one: what is too long is cut
};

/// A sentence behind a short key: "WARNING", "~13%", "".
struct Note {
  std::string key, text;
  Lines lines = Lines::as_needed;
};

using Block = std::variant<Heading, Paragraph, std::vector<Note>, DocumentTable>;
using Document = std::vector<Block>;

/// Plain text, no line wider than `columns`, except where a single word is.
[[nodiscard]] std::string to_text(const Document& document, std::size_t columns);
/// Markdown with all columns and intervals, nothing shortened; a heading that comes first is the
/// title.
[[nodiscard]] std::string to_markdown(const Document& document);

// Pieces of plain text for reports that are no documents yet.

/// One fact a line, indented by two, its key in a column.
[[nodiscard]] std::string lines(const Facts& facts);
/// A title of a part of a report, underlined; an empty line before it.
[[nodiscard]] std::string heading(const std::string& title);

/// Escaped text in lines of at most `columns`, each after the indent; a word that is longer has a
/// line of its own. No line for no text.
[[nodiscard]] std::string in_lines(const std::string& text, std::size_t indent,
                                   std::size_t columns);
/// Escaped text of at most `columns` columns, with "…" at its end where it was longer.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t columns);

/// The table with its title above, both indented by two.
[[nodiscard]] std::string titled(const TitledTable& part);

/// The one description of a figure that reports give of an Item (a point, a curve, a row).
template <class Item>
struct Metric {
  std::string_view key;      ///< for programs: "step_time"
  std::string_view heading;  ///< for people: "step time"
  Unit unit = Unit::text;
  std::string_view sentence;    ///< what it means, for legends
  Value (*value)(const Item&);  ///< SI; nothing where it is undefined
  Keep keep = Keep::always;
};

/// Nothing for no words.
[[nodiscard]] inline Value words(std::string text) {
  return text.empty() ? Value{} : Value{std::move(text)};
}
/// Nothing for an absent number.
[[nodiscard]] inline Value number(const std::optional<statistics::Located>& at) {
  return at ? Value{*at} : Value{};
}

/// A row for each item and a column for each metric that some item has a value of.
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

/// "heading: sentence" of each metric.
template <class Item>
[[nodiscard]] std::vector<Note> legend_of(std::span<const Metric<Item>> metrics) {
  std::vector<Note> notes;
  for (const Metric<Item>& metric : metrics) {
    notes.push_back({.key = std::string{metric.heading}, .text = std::string{metric.sentence}});
  }
  return notes;
}

}  // namespace isoscale::analysis
