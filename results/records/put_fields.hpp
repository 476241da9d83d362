// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "results/records/fields.hpp"
#include "results/records/layout.hpp"
#include "results/records/stored_values.hpp"

/// Writes records by their lists of fields (fields.hpp). The functions are templates over the
/// destination: a group of an HDF5 file (hdf5.hpp), an estimate of its size (Room), a JSON object
/// or packed bytes. A destination has the functions of hdf5::Group that the fields of its records
/// need.
namespace isoscale::results {

template <class Value, class Sink>
void put_values(Sink& into, const char* name, const std::vector<Stored<Value>>& values,
                const About& about) {
  if constexpr (std::is_enum_v<Value>) {
    into.write_codes(name, values, code_names<Value>(), about);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    into.write_texts(name, values, about);
  } else {
    into.write(name, std::span<const Stored<Value>>{values}, about);
  }
}

template <class Sink, class Row, class Member>
void put_column(Sink& into, const std::vector<Row>& rows, const Field<Member>& field,
                std::size_t ranks) {
  using Value = MemberOf<Member, const Row>;
  if constexpr (is_list<Value>) {
    std::vector<typename Value::value_type> all;
    for (const Row& row : rows)
      all.insert(all.end(), field.member(row).begin(), field.member(row).end());
    into.write_table(field.name, rows.size(), ranks, all, field.about);
  } else {
    std::vector<Stored<Value>> values;
    values.reserve(rows.size());
    for (const Row& row : rows) values.push_back(stored(field.member(row)));
    put_values<Value>(into, field.name, values, field.about);
  }
}

template <class Sink, class Row, class... Eaches>
void put_column(Sink& into, const std::vector<Row>& rows, const Lists<Eaches...>& field,
                std::size_t /*ranks*/) {
  std::vector<std::uint64_t> begin{0};
  for (const Row& row : rows) {
    begin.push_back(begin.back() + std::get<0>(field.each).list(row).size());
  }
  put_values<std::uint64_t>(into, field.name, begin, field.about);
  for_each_field(field.each, [&]<class List, class Member>(const Each<List, Member>& each) {
    using Value = MemberOf<Member, const typename MemberOf<List, const Row>::value_type>;
    std::vector<Stored<Value>> values;
    values.reserve(begin.back());
    for (const Row& row : rows) {
      for (const auto& entry : each.list(row)) values.push_back(stored(each.member(entry)));
    }
    put_values<Value>(into, each.name, values, each.about);
  });
}

template <class Sink, class Row, class Member>
void put_column(Sink& into, const std::vector<Row>& rows, const Plays<Member>& field,
                std::size_t /*ranks*/) {
  std::vector<std::uint64_t> count, begin{0};
  std::vector<double> values;
  for (const Row& row : rows) {
    for (const auto& play : field.member(row))
      values.insert(values.end(), play.begin(), play.end());
    count.push_back(field.member(row).size());
    begin.push_back(values.size());
  }
  put_values<std::uint64_t>(into, field.count, count, field.count_about);
  put_values<std::uint64_t>(into, field.begin, begin, field.begin_about);
  put_values<double>(into, field.value, values, field.value_about);
}

template <class Sink, class Row, class Member>
void put_column(Sink& into, const std::vector<Row>& rows, const Keys<Member>& field,
                std::size_t /*ranks*/) {
  using Value = typename MemberOf<Member, const Row>::mapped_type;
  std::map<std::string, std::vector<Value>> columns;
  Value absent{};
  if constexpr (std::is_same_v<Value, double>) absent = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t at = 0; at < rows.size(); ++at) {
    for (const auto& [key, value] : field.member(rows[at])) {
      if constexpr (std::is_same_v<Value, double>) {
        if (std::isnan(value)) continue;
      } else if (value.empty()) {
        continue;
      }
      columns.try_emplace(key, rows.size(), absent).first->second[at] = value;
    }
  }
  auto&& group = into.create_group(field.name);
  for (const auto& [key, column] : columns) {
    put_values<Value>(group, key.c_str(), column,
                      {field.unit_of == nullptr ? "text" : field.unit_of(key), field.description});
  }
}

template <class Sink, class Row, class Member>
void put_column(Sink& into, const std::vector<Row>& rows, const Interval<Member>& field,
                std::size_t /*ranks*/) {
  std::vector<double> value, lower, upper;
  for (const Row& row : rows) {
    const auto& member = field.member(row);
    value.push_back(stored(member ? std::optional{member->value} : std::nullopt));
    lower.push_back(stored(member ? member->lower : std::nullopt));
    upper.push_back(stored(member ? member->upper : std::nullopt));
  }
  const About bound{field.about.unit, "95% interval; NaN = none"};
  put_values<double>(into, field.value, value, field.about);
  put_values<double>(into, field.lower, lower, bound);
  put_values<double>(into, field.upper, upper, bound);
}

/// Writes a dataset for each field of the rows. `ranks` is the number of columns of the datasets
/// that have one column for each rank.
template <class Sink, class Row>
void put_rows(Sink& into, const std::vector<Row>& rows, std::size_t ranks = 0) {
  for_each_field(fields_of<Row>, [&](const auto& field) { put_column(into, rows, field, ranks); });
}

template <class Sink, class Value>
void put_attribute(Sink& into, const char* attribute, const Value& value) {
  if constexpr (is_optional<Value>) {
    if (value) put_attribute(into, attribute, *value);
  } else if constexpr (std::is_same_v<Value, bool>) {
    into.set_flag(attribute, value);
  } else if constexpr (std::is_enum_v<Value>) {
    into.set(attribute, name(value));
  } else if constexpr (std::is_same_v<Value, int>) {
    into.set(attribute, std::int64_t{value});
  } else {
    into.set(attribute, value);
  }
}

template <class Sink, class Record, class Member>
void put_field(Sink& into, const Record& record, const Attribute<Member>& field,
               std::size_t /*ranks*/) {
  put_attribute(into, field.name, field.member(record));
}

template <class Sink, class Record, class Member>
void put_field(Sink& into, const Record& record, const Pairs<Member>& field,
               std::size_t /*ranks*/) {
  auto&& group = into.create_group(field.name);
  for (const auto& [key, value] : field.member(record)) group.set(key, value);
}

template <class Sink, class Record, class Member>
void put_field(Sink& into, const Record& record, const Text<Member>& field, std::size_t /*ranks*/) {
  into.write_text(field.name, field.member(record), field.about);
}

template <class Sink, class Record, class Member>
void put_field(Sink& into, const Record& record, const Field<Member>& field, std::size_t ranks) {
  using Value = typename MemberOf<Member, const Record>::value_type;
  if constexpr (is_list<Value>) {
    Value all;
    for (const Value& row : field.member(record)) all.insert(all.end(), row.begin(), row.end());
    into.write_table(field.name, field.member(record).size(), ranks, all, field.about);
  } else {
    put_values<Value>(into, field.name, field.member(record), field.about);
  }
}

template <class Sink, class Record, class Member>
void put_field(Sink& into, const Record& record, const Table<Member>& field, std::size_t ranks) {
  if (*field.name == '\0') return put_rows(into, field.member(record), ranks);
  auto&& group = into.create_group(field.name);
  put_rows(group, field.member(record), ranks);
}

/// Writes the fields of one record, by default all of them. `ranks` is the same as in put_rows().
template <class Sink, class Record, class Fields = decltype(fields_of<Record>)>
void put_record(Sink& into, const Record& record, std::size_t ranks = 0,
                const Fields& fields = fields_of<Record>) {
  for_each_field(fields, [&](const auto& field) { put_field(into, record, field, ranks); });
}

/// Estimates a file's size as an upper limit on the bytes of records, with a generous estimate for
/// the structure.
class Room {
 public:
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  Room& create_group(const std::string& /*name*/) {
    bytes_ += structure;
    return *this;
  }
  template <class Value>
  void set(const std::string& /*name*/, const Value& /*value*/) {
    bytes_ += attribute;
  }
  void set(const std::string& /*name*/, std::string_view text) {
    bytes_ += attribute + text.size();
  }
  void set_flag(const std::string& /*name*/, bool /*value*/) { bytes_ += attribute; }  // NOLINT
  template <class Value>
  void write(const std::string& /*name*/, std::span<const Value> values, const About& /*about*/) {
    bytes_ += structure + values.size_bytes();
  }
  void write_table(const std::string& /*name*/, std::size_t /*rows*/, std::size_t /*columns*/,
                   const std::vector<double>& values, const About& /*about*/) {
    bytes_ += structure + values.size() * sizeof(double);
  }
  void write_codes(const std::string& /*name*/, const std::vector<std::uint8_t>& codes,
                   const std::vector<std::string>& /*names*/, const About& /*about*/) {
    bytes_ += structure + codes.size();
  }
  void write_text(const std::string& /*name*/, const std::string& text, const About& /*about*/) {
    bytes_ += structure + text.size();
  }
  /// All texts of a dataset have the length of the longest.
  void write_texts(const std::string& /*name*/, const std::vector<std::string>& texts,
                   const About& /*about*/) {
    std::size_t longest = 1;
    for (const std::string& text : texts) longest = std::max(longest, text.size());
    bytes_ += structure + texts.size() * longest;
  }

 private:
  static constexpr std::uint64_t structure = 4096, attribute = 128;
  std::uint64_t bytes_ = 0;
};

}  // namespace isoscale::results
