// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
//
// schema_page SCHEMA.md           prints the page with the tables of fields as the lists of fields
//                                 give them: each follows a line <!-- attributes of GROUP --> or
//                                 <!-- datasets of GROUP -->
// schema_page --check SCHEMA.md   fails if the page has other tables
// Both fail if the page has no such line for a table that is not empty.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/text.hpp"
#include "results/records/point_fields.hpp"

namespace isoscale::results {
namespace {

template <class Value>
std::string type_name() {
  using Number = Stored<Value>;
  if constexpr (std::is_enum_v<Value>) return "u8, codes";
  if constexpr (std::is_same_v<Number, std::string>) return "text";
  if constexpr (std::is_same_v<Number, double>) return "f64";
  if constexpr (std::is_integral_v<Number>) {
    return fmt::format("{}{}", std::is_signed_v<Number> ? 'i' : 'u', 8 * sizeof(Number));
  }
}

template <class Value>
std::string attribute_type() {
  if constexpr (is_optional<Value>) {
    return attribute_type<typename Value::value_type>();
  } else if constexpr (std::is_same_v<Value, bool>) {
    return "bool";
  } else if constexpr (std::is_enum_v<Value>) {
    return "text";
  } else {
    return std::is_same_v<Value, int> ? "i64" : type_name<Value>();
  }
}

/// Returns the words on a field's value in files from before it was added, such as `, before it
/// off`.
template <class Value>
std::string before_text(const Value& before) {
  if constexpr (std::is_same_v<Value, std::string>) {
    return before.empty() ? ", before it empty" : fmt::format(", before it `{}`", before);
  } else if constexpr (std::is_arithmetic_v<Value>) {
    return fmt::format(", before it {}", before);
  } else {
    return "";
  }
}

constexpr const char* attribute_heading = "| attribute | type | meaning |\n|---|---|---|\n";
constexpr const char* dataset_heading =
    "| dataset | type | shape | unit | meaning |\n|---|---|---|---|---|\n";

/// Describes the fields of records: it calls itself for the records in groups within.
class Page {
 public:
  template <class Record>
  void describe(const std::string& group) {
    const Record record{};
    for_each_field(fields_of<Record>,
                   [&](const auto& field) { record_field(group, record, field); });
  }
  /// The tables by what a line of the page calls them, such as "attributes of run".
  [[nodiscard]] const std::map<std::string, std::string>& tables() const { return tables_; }

 private:
  /// The group of a list, what its entries are called, and the version that added it.
  struct List {
    std::string group, noun;
    int since = 0;
    [[nodiscard]] std::string shape() const { return "[" + noun + "]"; }
  };

  static std::string inside(const std::string& group, std::string_view name) {
    return group.empty() ? std::string{name} : fmt::format("{}/{}", group, name);
  }
  static std::string since_text(int since) {
    return since > 0 ? fmt::format("; since {}.{}", schema_major, since) : "";
  }
  void add(const std::string& table, const char* heading, const std::string& row) {
    tables_.try_emplace(table, heading).first->second += row;
  }
  void dataset(const std::string& group, const std::string& name, std::string_view type,
               std::string_view shape, const About& about, std::string_view more = "") {
    add("datasets of " + group, dataset_heading,
        fmt::format("| `{}` | {} | {} | {} | {}{} |\n", name, type, shape, about.unit,
                    about.description, more));
  }

  template <class Record, class Member>
  void record_field(const std::string& group, const Record& record,
                    const Attribute<Member>& field) {
    const auto before = field_value(field.member(record));
    add("attributes of " + group, attribute_heading,
        fmt::format("| `{}` | {} | {}{}{} |\n", field.name,
                    attribute_type<std::decay_t<decltype(before)>>(), field.description,
                    since_text(field.since), field.since > 0 ? before_text(before) : ""));
  }
  template <class Record, class Member>
  void record_field(const std::string&, const Record&, const Pairs<Member>&) {}
  template <class Record, class Member>
  void record_field(const std::string& group, const Record&, const Field<Member>& field) {
    using Value = MemberOf<Member, const Record>;
    if constexpr (std::is_same_v<Value, std::string>) {
      dataset(group, field.name, "text", "scalar", field.about);
    } else {
      const std::string_view entries = field.per.empty() ? field.name : field.per;
      rows_field<typename Value::value_type>({group, std::string{entries}}, field);
    }
  }
  template <class Record, class Member>
  void record_field(const std::string& group, const Record&, const Table<Member>& field) {
    using Rows = FieldValue<MemberOf<Member, const Record>>;
    // A group of its own has a section, which says since when there is one.
    const bool has_group = *field.name != '\0';
    rows<typename Rows::value_type>({has_group ? inside(group, field.name) : group,
                                     std::string{field.rows}, has_group ? 0 : field.since});
  }
  template <class Record, class Member>
  void record_field(const std::string& group, const Record&, const Part<Member>& field) {
    using Value = FieldValue<MemberOf<Member, const Record>>;
    if constexpr (is_optional<Value>) {
      describe<typename Value::value_type>(inside(group, field.name));
    } else {
      describe<Value>(inside(group, field.name));
    }
  }

  template <class Row>
  void rows(const List& list) {
    for_each_field(fields_of<Row>, [&](const auto& field) { row_field<Row>(list, field); });
  }
  /// A field of a list; `Value` is that of an entry.
  template <class Value, class Member>
  void rows_field(const List& list, const Field<Member>& field) {
    const std::string more = since_text(std::max(list.since, field.since));
    if constexpr (is_list<Value>) {
      dataset(list.group, field.name, type_name<typename Value::value_type>(),
              "[" + list.noun + ", ranks]", field.about, more);
    } else {
      std::string codes;
      if constexpr (std::is_enum_v<Value>) {
        codes = fmt::format(": {}", fmt::join(code_names<Value>(), ", "));
      }
      dataset(list.group, field.name, type_name<Value>(), list.shape(), field.about, codes + more);
    }
  }
  template <class Row, class Member>
  void row_field(const List& list, const Field<Member>& field) {
    rows_field<FieldValue<MemberOf<Member, const Row>>>(list, field);
  }
  template <class Row, class Entries, class Fields>
  void row_field(const List& list, const Lists<Entries, Fields>& field) {
    using Entry = typename FieldValue<MemberOf<Entries, const Row>>::value_type;
    dataset(list.group, field.name, "u64", "[" + list.noun + " + 1]", field.about);
    std::string entries{
        std::string_view{field.name}.substr(0, std::string_view{field.name}.find("_begin"))};
    if (!entries.ends_with('s')) entries += 's';
    const List inner{list.group, fmt::format("{} of {}", entries, list.noun)};
    for_each_field(field.fields, [&](const auto& column) { row_field<Entry>(inner, column); });
  }
  template <class Row, class Entries>
  void row_field(const List& list, const Numbered<Entries>& field) {
    dataset(list.group, field.name, "u32", list.shape(), field.about);
    rows<typename MemberOf<Entries, const Row>::value_type>(list);
  }
  template <class Row, class Member, class Fields>
  void row_field(const List& list, const Interval<Member, Fields>& field) {
    for_each_field(field.fields, [&](const auto& column) { row_field<Row>(list, column); });
  }
  template <class Row, class Entry, class Owner>
  void row_field(const List& list, const Divided<Row, Entry, Owner>& field) {
    rows<Entry>({list.group, std::string{field.entries}, list.since});
  }
  template <class Row, class Member>
  void row_field(const List& list, const Distinct<Member>& field) {
    dataset(list.group, field.name, "i32", list.shape(), field.about, since_text(field.since));
    rows<MemberOf<Member, const Row>>({list.group, std::string{field.values}, field.since});
  }
  template <class Row, class Member>
  void row_field(const List& list, const Keys<Member>& field) {
    using Value = typename MemberOf<Member, const Row>::mapped_type;
    dataset(list.group, std::string{field.name} + "/*", type_name<Value>(), list.shape(),
            {field.unit_of == nullptr ? "text" : "by name", field.description});
  }

  std::map<std::string, std::string> tables_;
};

/// The page with the tables as the lists of fields give them, and the tables that it has no place
/// for.
struct Renewed {
  std::string text;
  std::set<std::string> left_out;
};

Renewed renewed(const std::string& text) {
  Page page;
  page.describe<RunData>("run");
  page.describe<PointData>("point");
  Renewed result;
  for (const auto& [name, table] : page.tables()) result.left_out.insert(name);
  bool skips = false;
  for (const std::string_view line : base::split(text, '\n')) {
    skips = skips && line.starts_with('|');
    if (skips) continue;
    result.text += fmt::format("{}\n", line);
    const bool asks_for_table =
        line.starts_with("<!-- attributes of ") || line.starts_with("<!-- datasets of ");
    if (!asks_for_table) continue;
    const std::size_t begin = std::string_view{"<!-- "}.size();
    const std::string name{line.substr(begin, line.find(" -->") - begin)};
    const auto table = page.tables().find(name);
    result.text += table == page.tables().end() ? "no such table\n" : table->second;
    result.left_out.erase(name);
    skips = true;
  }
  result.text.pop_back();  // a text that ends in a newline has an empty part after it
  return result;
}

}  // namespace
}  // namespace isoscale::results

int main(int argument_count, char** arguments) {
  const bool checks = argument_count == 3 && std::string_view{arguments[1]} == "--check";
  if (argument_count != 2 && !checks) {
    std::fputs("usage: schema_page [--check] SCHEMA.md\n", stderr);
    return 2;
  }
  const char* const path = arguments[argument_count - 1];
  std::ifstream in{path};
  const std::string text{std::istreambuf_iterator<char>{in}, {}};
  if (text.empty()) {
    fmt::print(stderr, "{} cannot be read, or is empty\n", path);
    return 2;
  }
  const auto [renewed, left_out] = isoscale::results::renewed(text);
  if (!checks) fmt::print("{}", renewed);
  for (const std::string& tables : left_out) {
    fmt::print(stderr, "the page has no line <!-- {} -->\n", tables);
  }
  if (!left_out.empty()) return 1;
  if (!checks || renewed == text) return 0;
  fmt::print(stderr,
             "the tables differ from the lists of fields; replace the page by what "
             "schema_page SCHEMA.md prints\n");
  return 1;
}
