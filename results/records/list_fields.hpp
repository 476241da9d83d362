// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
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

/// A list that each row of a table has. Its entries are rows with `fields` of their own: entries
/// [begin[i], begin[i + 1]) belong to row i, where `begin` is the dataset `name`.
template <class List, class Fields>
struct Lists {
  const char* name;
  List member;
  About about;
  Fields fields;

  template <class Sink, class Row>
  void put_rows(Sink& into, const std::vector<Row>& rows, std::size_t ranks) const {
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
  template <class Source, class Row>
  void get_rows(const Source& from, RowsToFill<Row>& rows, int minor) const {
    using Entries = FieldValue<MemberOf<List, Row>>;
    const auto begin = from.template read<std::uint64_t>(name);
    auto all = results::get_rows<typename Entries::value_type>(from, minor, rows.label(), fields);
    std::vector<Row>& filled = rows.of(name, begin, all.size());
    const auto at = [&](std::size_t row) {
      return std::move_iterator{all.begin() + static_cast<std::ptrdiff_t>(begin[row])};
    };
    for (std::size_t row = 0; row < filled.size(); ++row) {
      set_field_value(member(filled[row]), Entries(at(row), at(row + 1)));
    }
  }
};

/// A map in each row of a table, stored as a group with one dataset for each key that some row has.
/// An empty text or a NaN means that the row does not have the key. `unit_of` gives the unit of a
/// key.
template <class Member>
struct Keys {
  const char* name;
  Member member;
  std::string_view (*unit_of)(std::string_view key);
  std::string_view description;

  static bool is_absent(const std::string& value) { return value.empty(); }
  static bool is_absent(double value) { return std::isnan(value); }

  template <class Sink, class Row>
  void put_rows(Sink& into, const std::vector<Row>& rows, std::size_t /*ranks*/) const {
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
  template <class Source, class Row>
  void get_rows(const Source& from, RowsToFill<Row>& rows, int /*minor*/) const {
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
constexpr auto lists(const char* name, std::string_view description, List list, Fields... fields) {
  return Lists<decltype(reach(list)), std::tuple<Fields...>>{
      name, reach(list), {"1", description}, {fields...}};
}

/// Returns a function that gives the lists of a row, which have equal lengths, as one list of
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
/// Takes the place of a pointer to a member for zipped() lists: returns one element of the tuple.
template <std::size_t index>
inline constexpr auto element = [](auto& entry) -> auto& { return std::get<index>(entry); };

/// Returns the fields of an optional value and of the bounds of its interval: three datasets, with
/// NaN for absent numbers.
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
  return std::tuple{field(value, converted(member, get, set), unit, description),
                    bound(lower, &Fitted::lower), bound(upper, &Fitted::upper)};
}

template <class Member>
constexpr auto keys(const char* name, Member member, std::string_view (*unit_of)(std::string_view),
                    std::string_view description) {
  return Keys<decltype(reach(member))>{name, reach(member), unit_of, description};
}

}  // namespace isoscale::results
