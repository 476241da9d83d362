// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/group_by.hpp"
#include "analysis/render/escaped_text_and_tables.hpp"
#include "analysis/render/json_values.hpp"
#include "analysis/value_units.hpp"
#include "statistics/quantiles_and_fits.hpp"

/// Represents a report as a list of blocks, independent of the output format. Numbers stay numbers,
/// and texts (except Facts) stay as they are in run files: to_text() and to_markdown() format,
/// escape, wrap and shorten them.
namespace isoscale::analysis::render {

using Json = nlohmann::ordered_json;

/// A value in the form that it has in the JSON report; null if it is absent. value_json() makes it.
/// In text, an object with the entries value (or median), lower and upper is shown as a number with
/// its 95% interval, and a list as words with commas.
using Value = Json;

/// Says what a column may lose in a table that is too wide for the page. First, columns with
/// `without_interval` and `if_it_fits` lose their intervals; then the columns with `if_it_fits` are
/// left out. Drawings always stay in text.
enum class Keep : std::uint8_t {
  value_only,  ///< the column's numbers show no intervals; another column shows them
  always,
  without_interval,  ///< the column's numbers may lose their intervals
  if_it_fits,        ///< the whole column may be left out
  drawing,           ///< bars, which only plain text shows
};

struct DocumentColumn {
  std::string key;      ///< for programs: "step_time"
  std::string heading;  ///< for people: "step time"
  Unit unit = Unit::text;
  Keep keep = Keep::always;
};

enum class Width : std::uint8_t { of_page, as_needed };

struct DocumentTable {
  std::vector<DocumentColumn> columns{};
  std::vector<std::vector<Value>> rows{};  ///< each with one value per column
  std::string title{};                     ///< "" = no title
  /// For each row the reason why it has no results, which is shown after the row's cells; "" for a
  /// row with results. The list is empty if all rows have results.
  std::vector<std::string> reasons{};
  /// The first `named` columns identify a row. A row with a reason shows only these columns, unless
  /// a later column has a number.
  std::size_t named = std::string::npos;
  Width width = Width::of_page;
};

enum class Underline : std::uint8_t { no, yes };

/// A title in a report. An empty line precedes a heading that is not the first block.
struct Heading {
  std::string text;
  Underline underline = Underline::no;  ///< yes: underlined in plain text
};

enum class Lines : std::uint8_t { as_needed, one };

struct Paragraph {
  std::string text;
  Lines lines = Lines::as_needed;  ///< one: the text is cut to one line
};

/// A sentence after a short key, for example "WARNING" or "~13%"; the key may be "".
struct Note {
  std::string key, text;
  Lines lines = Lines::as_needed;
};

/// The text of Facts is already escaped; that of all other blocks is escaped when it is written.
using Block = std::variant<Heading, Paragraph, std::vector<Note>, Facts, DocumentTable>;
using Document = std::vector<Block>;

/// Appends the blocks of `more` to the document.
void append(Document& document, Document more);
/// The next two functions append their second argument, unless it is empty.
void append(Document& document, Facts facts);
void append(Document& document, DocumentTable table);
/// Appends the tables that are not empty.
void append(Document& document, std::vector<DocumentTable> tables);
/// Appends a paragraph for each sentence.
void append_sentences(Document& document, const std::vector<std::string>& sentences);
void append(Facts& facts, Facts more);

/// Returns plain text with lines of at most `columns` characters. Longer words are not split.
/// Facts, underlined headings and tables of Width::as_needed are neither wrapped nor shortened.
/// Other tables that are too wide are narrowed as far as their columns allow.
[[nodiscard]] std::string to_text(const Document& document, std::size_t columns);
/// Returns Markdown, in which tables have all columns except drawings and are not shortened. If the
/// first block is a heading, it becomes the title.
[[nodiscard]] std::string to_markdown(const Document& document);

/// Each output (text, CSV, comparison, page) has a list of keys of the metrics that it shows. The
/// word "..." in a list stands for all further metrics whose member `shown` has the bit of that
/// output, for example `in_text | in_csv`. JSON shows every metric that is not only for people.
inline constexpr unsigned in_text = 1, in_csv = 2, in_compare = 4, in_page = 8;
inline constexpr unsigned everywhere = in_text | in_csv | in_compare | in_page;

/// Describes one figure (a number or a text) of an Item, which is a point, a curve, a row, ...; all
/// reports use this description.
template <class Item>
struct Metric {
  /// The name in outputs for programs: "step_time". A metric whose key begins with "~" is only in
  /// outputs for people.
  std::string_view key;
  std::string_view heading;  ///< for people: "step time"
  Unit unit = Unit::text;
  Value (*value)(const Item&) = nullptr;  ///< in SI units; null: use stored_value()
  std::string_view sentence{};            ///< explains the figure in legends and on the page
  unsigned shown = 0;                     ///< outputs whose "..." includes it: in_text, in_csv, ...
  Keep keep = Keep::always;

  [[nodiscard]] constexpr bool is_for_people() const { return key.starts_with('~'); }
  [[nodiscard]] constexpr std::string_view name() const { return key.substr(is_for_people()); }
};
template <class Item>
using Metrics = std::span<const Metric<Item>>;

/// Returns the value that an item stores under a key; this overload is for types of items that
/// store no values under keys.
template <class Item>
[[nodiscard]] Value stored_value(const Item& /*item*/, std::string_view /*key*/, Unit /*unit*/) {
  return {};
}
template <class Item>
[[nodiscard]] Value value_of(const Metric<Item>& metric, const std::type_identity_t<Item>& item) {
  return metric.value == nullptr ? stored_value(item, metric.key, metric.unit) : metric.value(item);
}

/// Applies a path of members and functions to an item: at_path<&A::b, f>(a) is f(a.b).
template <auto First, auto... Rest>
[[nodiscard]] decltype(auto) at_path(const auto& item) {
  if constexpr (sizeof...(Rest) == 0) {
    return (std::invoke(First, item));
  } else {
    return at_path<Rest...>(std::invoke(First, item));
  }
}
/// A function for Metric::value that returns a member of the item (see at_path() for `Path`), which
/// value_json() converts.
template <auto... Path>
inline constexpr auto member =
    [](const auto& item) -> Value { return value_json(at_path<Path...>(item)); };
/// Like `member`, for a whole number that is stored as a double, as in run files.
template <auto... Path>
inline constexpr auto whole =
    [](const auto& item) -> Value { return count_or_null(at_path<Path...>(item)); };
/// Like `member`, for a text or list that JSON contains even if it is empty.
template <auto... Path>
inline constexpr auto plain =
    [](const auto& item) -> Value { return Value(at_path<Path...>(item)); };

/// Returns a number with its interval: "92.5% (91.8% to 93.2%)", "6.703 ms ±0.5%".
[[nodiscard]] std::string located_text(const statistics::Located& at, Unit unit);
/// Returns a value as text for people, without its interval; escaped.
[[nodiscard]] std::string text_of(const Value& value, Unit unit);
/// True if there is no value: null, or an object whose entry "median" is null.
[[nodiscard]] bool is_absent(const Value& value);

/// Adds a column to a table, unless all its values are absent.
void add_column(DocumentTable& table, DocumentColumn column, std::vector<Value> values);
/// Adds the columns of `more`, which has as many rows as `table`.
void add_columns(DocumentTable& table, DocumentTable more);
/// A cell with the heading and the unit of its column; only the first row's headings and units
/// count. Words are aligned right unless the unit is `text`.
struct Cell {
  std::string heading;
  Value value;
  Unit unit = Unit::count;
};
/// Adds a row to a table that is not made from metrics; the first row defines the columns, and the
/// table gets Width::as_needed.
void add_row(DocumentTable& table, std::vector<Cell> cells);
/// Returns the table with its values as text, with all columns and nothing shortened.
[[nodiscard]] TitledTable as_text(const DocumentTable& table);

/// A column for table_of() that has a given value for each item instead of a metric of the item.
struct OtherColumn {
  DocumentColumn column;
  std::vector<Value> values;
};

/// Returns a table with a row for each item. It has a column for each metric or other column that
/// `keys` names and for which at least one item has a value; an empty `keys` names all metrics with
/// a heading. The columns before "|" in `keys` identify a row. An item may be null; its row is then
/// empty.
template <class Item>
[[nodiscard]] DocumentTable table_of(std::type_identity_t<Metrics<Item>> metrics,
                                     const std::vector<const Item*>& items, std::string_view keys,
                                     const std::vector<OtherColumn>& others = {}) {
  DocumentTable table{.rows = std::vector<std::vector<Value>>(items.size()),
                      .width = Width::as_needed};
  const auto add = [&](const Metric<Item>& metric) {
    std::vector<Value> values;
    for (const Item* const item : items) {
      values.push_back(item == nullptr ? Value() : value_of(metric, *item));
    }
    add_column(table,
               {std::string{metric.name()}, std::string{metric.heading}, metric.unit, metric.keep},
               std::move(values));
  };
  for (const Metric<Item>& metric : metrics) {
    if (keys.empty() && !metric.heading.empty()) add(metric);
  }
  for (const std::string_view key : words_in(keys)) {
    if (key == "|") table.named = table.columns.size();
    for (const OtherColumn& other : others) {
      if (other.column.key == key) add_column(table, other.column, other.values);
    }
    for (const Metric<Item>& metric : metrics) {
      if (metric.name() == key) add(metric);
    }
  }
  return table;
}
/// Returns a table that fits on the page, with a column for each metric that has a heading.
template <class Item>
[[nodiscard]] DocumentTable table_of(Metrics<Item> metrics, std::span<const Item> items) {
  DocumentTable table = table_of<Item>(metrics, pointers_to(items), "");
  table.width = Width::of_page;
  return table;
}

/// Returns an object with the metrics that `keys` names, in this order. If `keys` is empty, it has
/// all metrics except those that are only for people. A key that begins with "?" is left out if it
/// has no value.
template <class Item>
[[nodiscard]] Json object_of(std::type_identity_t<Metrics<Item>> metrics, const Item& item,
                             std::string_view keys = "") {
  Json object = Json::object();
  const auto add = [&](const Metric<Item>& metric, bool is_optional) {
    Value value = value_of(metric, item);
    if (!is_optional || !is_absent(value)) object[std::string{metric.name()}] = std::move(value);
  };
  for (const Metric<Item>& metric : metrics) {
    if (keys.empty() && !metric.is_for_people()) add(metric, false);
  }
  for (std::string_view key : words_in(keys)) {
    const bool is_optional = key.starts_with('?');
    if (is_optional) key.remove_prefix(1);
    for (const Metric<Item>& metric : metrics) {
      if (metric.name() == key) add(metric, is_optional);
    }
  }
  return object;
}

/// Returns the list of keys `keys`, with the word "..." replaced by further metrics: those that
/// `output` (in_text, in_csv, ...) shows and that neither `keys` nor `elsewhere` names. An entry of
/// a list may be "name=key/path", as for add_csv_cells().
template <class Item>
[[nodiscard]] std::string completed(std::type_identity_t<Metrics<Item>> metrics,
                                    std::string_view keys, unsigned output,
                                    std::string_view elsewhere = "") {
  std::set<std::string_view> named;
  for (const std::string_view list : {keys, elsewhere}) {
    for (const std::string_view word : words_in(list)) {
      const std::string_view path = word.substr(word.find('=') + 1);
      named.insert(path.substr(0, path.find('/')));
    }
  }
  std::string all;
  for (const std::string_view word : words_in(keys)) {
    if (word != "...") all.append(word) += ' ';
    for (const Metric<Item>& metric : metrics) {
      const bool is_other = word == "..." && (metric.shown & output) != 0;
      if (is_other && !named.contains(metric.name())) all.append(metric.name()) += ' ';
    }
  }
  return all;
}

/// Returns an object that describes, under its name, each metric that has a heading: the heading,
/// form and unit, the sentence if there is one, and `shown` if "..." includes it in `output`.
template <class Item>
[[nodiscard]] Json described(Metrics<Item> metrics, unsigned output = 0) {
  Json all = Json::object();
  for (const Metric<Item>& metric : metrics) {
    if (metric.heading.empty()) continue;
    Json& of = all[std::string{metric.name()}];
    of = {{"heading", metric.heading}, {"form", form(metric.unit)}, {"unit", name(metric.unit)}};
    if (!metric.sentence.empty()) of["sentence"] = metric.sentence;
    if ((metric.shown & output) != 0) of["shown"] = true;
  }
  return all;
}

/// Returns a note for each metric: its heading, and the sentence that explains it.
template <class Item>
[[nodiscard]] std::vector<Note> legend_of(Metrics<Item> metrics) {
  std::vector<Note> notes;
  for (const Metric<Item>& metric : metrics) {
    notes.push_back({.key = std::string{metric.heading}, .text = std::string{metric.sentence}});
  }
  return notes;
}

}  // namespace isoscale::analysis::render
