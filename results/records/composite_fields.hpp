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
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "results/records/calibration_data.hpp"
#include "results/records/fields.hpp"

/// Defines the fields of tables whose rows have lists, maps or intervals (see fields.hpp).
namespace isoscale::results {

/// A list in each row of a table. The entries of all lists are stored as one table with the columns
/// `fields`; those of row i are [begin[i], begin[i + 1]), where `begin` is the dataset `name`.
template <class List, class Fields>
struct Lists {
  const char* name;
  List member;
  About about;
  Fields fields;

  template <class Row>
  void put_rows(auto& into, const std::vector<Row>& rows, std::size_t ranks) const {
    std::vector<std::uint64_t> begin{0};
    FieldValue<MemberOf<List, const Row>> all;
    for (const Row& row : rows) {
      const auto& entries = field_value(member(row));
      all.insert(all.end(), entries.begin(), entries.end());
      begin.push_back(all.size());
    }
    put_values<std::uint64_t>(into, name, begin, about);
    results::put_rows(into, all, ranks, fields);
  }
  template <class Row>
  void get_rows(const auto& from, RowsToFill<Row>& rows, int minor) const {
    using Entry = typename FieldValue<MemberOf<List, Row>>::value_type;
    const auto begin = from.template read<std::uint64_t>(name);
    rows.divide(name, begin, results::get_rows<Entry>(from, minor, rows.label(), fields), member);
  }
};

/// A list in each row of a table whose rows hold nothing else. Only the entries are stored, with
/// the row number of each in the dataset `name`, so rows with an empty list are lost.
template <class List>
struct Numbered {
  const char* name;
  List member;
  About about;

  template <class Row>
  void put_rows(auto& into, const std::vector<Row>& rows, std::size_t ranks) const {
    std::vector<std::uint32_t> row_of;
    MemberOf<List, const Row> all;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      all.insert(all.end(), member(rows[row]).begin(), member(rows[row]).end());
      row_of.resize(all.size(), static_cast<std::uint32_t>(row));
    }
    put_values<std::uint32_t>(into, name, row_of, about);
    results::put_rows(into, all, ranks);
  }
  template <class Row>
  void get_rows(const auto& from, RowsToFill<Row>& rows, int minor) const {
    using Entry = typename MemberOf<List, Row>::value_type;
    const auto row_of = from.template read<std::uint32_t>(name);
    std::vector<std::uint64_t> begin;
    for (std::size_t at = 0; at < row_of.size(); ++at) {
      if (at == 0 || row_of[at] != row_of[at - 1]) begin.push_back(at);
    }
    begin.push_back(row_of.size());
    rows.divide(name, begin, results::get_rows<Entry>(from, minor, rows.label()), member);
  }
};

/// A list in each row of a table, divided among the entries of another list of the row, its
/// `owners`: each owner has `count` entries from `begin` on. The entries are stored in the order of
/// their owners, whose field `count` is read first.
template <class Row, class Entry, class Owner>
struct Divided {
  std::vector<Entry> Row::*member;
  std::vector<Owner> Row::*owners;
  std::uint32_t Owner::*begin;
  std::uint32_t Owner::*count;
  std::string_view entries;  ///< name of the entries in error messages and SCHEMA.md: "waits"

  void put_rows(auto& into, const std::vector<Row>& rows, std::size_t ranks) const {
    std::vector<Entry> all;
    for (const Row& row : rows) {
      for (const Owner& owner : row.*owners) {
        const auto first = (row.*member).begin() + owner.*begin;
        all.insert(all.end(), first, first + owner.*count);
      }
    }
    results::put_rows(into, all, ranks);
  }
  void get_rows(const auto& from, RowsToFill<Row>& rows, int minor) const {
    const std::vector<Entry> all = results::get_rows<Entry>(from, minor, entries);
    std::uint64_t total = 0;
    for (const Row& row : rows.known()) {
      for (const Owner& owner : row.*owners) total += owner.*count;
    }
    require(total == all.size(), "the counts of {} add up to {} {}, but there are {}", rows.label(),
            total, entries, all.size());
    auto next = all.begin();
    for (Row& row : rows.known()) {
      for (Owner& owner : row.*owners) {
        owner.*begin = static_cast<std::uint32_t>((row.*member).size());
        (row.*member).insert((row.*member).end(), next, next + owner.*count);
        next += owner.*count;
      }
    }
  }
};
template <class Row, class Entry, class Owner>
Divided(std::vector<Entry> Row::*, std::vector<Owner> Row::*, std::uint32_t Owner::*,
        std::uint32_t Owner::*, std::string_view) -> Divided<Row, Entry, Owner>;  // for clang 16

/// A value that many rows of a table share. The distinct values are stored once, as a table; the
/// dataset `name` has for each row the index of its value there, or -1 for the default value.
template <class Member>
struct Distinct {
  const char* name;
  Member member;
  About about;
  std::string_view values;  ///< name of the values in error messages and SCHEMA.md: "shapes"
  int since;

  template <class Row>
  void put_rows(auto& into, const std::vector<Row>& rows, std::size_t ranks) const {
    using Value = MemberOf<Member, const Row>;
    std::map<Value, std::int32_t> index_of{{Value{}, -1}};
    std::vector<Value> distinct;
    std::vector<std::int32_t> indices;
    for (const Row& row : rows) {
      const auto next = static_cast<std::int32_t>(distinct.size());
      const auto [at, is_new] = index_of.try_emplace(member(row), next);
      if (is_new) distinct.push_back(at->first);
      indices.push_back(at->second);
    }
    put_values<std::int32_t>(into, name, indices, about);
    results::put_rows(into, distinct, ranks);
  }
  template <class Row>
  void get_rows(const auto& from, RowsToFill<Row>& rows, int minor) const {
    const auto indices = from.template read<std::int32_t>(name);
    const auto distinct = results::get_rows<MemberOf<Member, Row>>(from, minor, values);
    std::vector<Row>& filled = rows.of(indices.size());
    for (std::size_t at = 0; at < filled.size(); ++at) {
      if (indices[at] < 0) continue;
      const auto index = static_cast<std::size_t>(indices[at]);
      require(index < distinct.size(), "'{}' is {}, but there are {} {}", name, index,
              distinct.size(), values);
      member(filled[at]) = distinct[index];
    }
  }
};

/// A map in each row of a table, stored as a group with one dataset for each key that some row has;
/// a row without the key has an empty text or a NaN in it. `unit_of` gives the unit of a key.
template <class Member>
struct Keys {
  const char* name;
  Member member;
  std::string_view (*unit_of)(std::string_view key);
  std::string_view description;

  static bool is_absent(const std::string& value) { return value.empty(); }
  static bool is_absent(double value) { return std::isnan(value); }

  template <class Row>
  void put_rows(auto& into, const std::vector<Row>& rows, std::size_t /*ranks*/) const {
    using Value = typename MemberOf<Member, const Row>::mapped_type;
    std::map<std::string, std::vector<Value>> columns;
    Value absent{};
    if constexpr (std::is_same_v<Value, double>) absent = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t at = 0; at < rows.size(); ++at) {
      for (const auto& [key, value] : member(rows[at])) {
        if (is_absent(value)) continue;
        columns.try_emplace(key, rows.size(), absent).first->second[at] = value;
      }
    }
    auto&& group = into.create_group(name);
    for (const auto& [key, column] : columns) {
      put_values<Value>(group, key.c_str(), column,
                        {unit_of == nullptr ? "text" : unit_of(key), description});
    }
  }
  template <class Row>
  void get_rows(const auto& from, RowsToFill<Row>& rows, int /*minor*/) const {
    using Value = typename MemberOf<Member, Row>::mapped_type;
    const auto group = from.open_group(name);
    for (const std::string& key : group.names()) {
      const std::vector<Value> column = get_values<Value>(group, key.c_str());
      std::vector<Row>& filled = rows.of(column.size());
      for (std::size_t at = 0; at < filled.size(); ++at) {
        if (!is_absent(column[at])) member(filled[at]).emplace(key, column[at]);
      }
    }
  }
};

template <class List, class... Fields>
constexpr auto lists(const char* name, std::string_view description, List list,
                     const std::tuple<Fields...>& fields) {
  return Lists<decltype(reach(list)), std::tuple<Fields...>>{
      name, reach(list), {"1", description}, fields};
}
template <class List, class... Fields>
constexpr auto lists(const char* name, std::string_view description, List list, Fields... fields) {
  return lists(name, description, list, std::tuple{fields...});
}

template <class List>
constexpr auto numbered(const char* name, std::string_view description, List list) {
  return Numbered<decltype(reach(list))>{name, reach(list), {"1", description}};
}

template <class Member>
constexpr auto distinct(const char* name, std::string_view description, Member member,
                        std::string_view values, int since = 0) {
  return Distinct<decltype(reach(member))>{name, reach(member), {"1", description}, values, since};
}

/// Returns a function that joins several lists of a row, which have equal lengths, to one list of
/// tuples.
template <class Row, class... Values>
constexpr auto zipped(std::vector<Values> Row::*... lists) {
  using Entries = std::vector<std::tuple<Values...>>;
  const auto zip = [=](const Row& row) {
    Entries entries(std::max({(row.*lists).size()...}));
    for (std::size_t at = 0; at < entries.size(); ++at) entries[at] = {(row.*lists).at(at)...};
    return entries;
  };
  const auto unzip = [=](const Entries& entries, Row& row) {
    for (const auto& entry : entries) {
      std::apply([&](const Values&... values) { ((row.*lists).push_back(values), ...); }, entry);
    }
  };
  return converted(itself, zip, unzip);
}
/// Takes the place of a pointer to a member in the fields of a zipped() list of tuples.
template <std::size_t index>
inline constexpr auto element = [](auto& entry) -> auto& { return std::get<index>(entry); };

/// An optional value in each row of a table, and the bounds of its interval. `fields` describes the
/// three datasets, in which NaN stands for absent numbers.
template <class Member, class Fields>
struct Interval {
  const char* name;
  Member member;
  Fields fields;

  template <class Row>
  void put_rows(auto& into, const std::vector<Row>& rows, std::size_t ranks) const {
    results::put_rows(into, rows, ranks, fields);
  }
  template <class Row>
  void get_rows(const auto& from, RowsToFill<Row>& rows, int minor) const {
    for_each_field(fields, [&](const auto& field) { field.get_rows(from, rows, minor); });
  }
};

template <class Member>
constexpr auto interval(const char* value, const char* lower, const char* upper, Member member,
                        std::string_view unit, std::string_view description) {
  const auto bound = [=](const char* name, auto of) {
    const auto get = [=](const auto& fit) { return fit ? (*fit).*of : std::nullopt; };
    const auto set = [=](std::optional<double> from, auto& fit) {
      if (fit) (*fit).*of = from;
    };
    return field(name, converted(member, get, set), unit, "95% interval; NaN = none");
  };
  const auto get = [](const auto& fit) { return fit ? std::optional{fit->value} : std::nullopt; };
  const auto set = [](std::optional<double> from, auto& fit) {
    if (from) fit.emplace().value = *from;
  };
  const std::tuple fields{field(value, converted(member, get, set), unit, description),
                          bound(lower, &Fitted::lower), bound(upper, &Fitted::upper)};
  return Interval<decltype(reach(member)), std::remove_const_t<decltype(fields)>>{
      value, reach(member), fields};
}

template <class Member>
constexpr auto keys(const char* name, Member member, std::string_view (*unit_of)(std::string_view),
                    std::string_view description) {
  return Keys<decltype(reach(member))>{name, reach(member), unit_of, description};
}

}  // namespace isoscale::results
