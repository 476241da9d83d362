// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "results/records/fields.hpp"
#include "results/records/layout.hpp"
#include "results/records/stored_values.hpp"

/// Reads records by their lists of fields (fields.hpp) from a group of an HDF5 file, a JSON object
/// or packed bytes, like put_fields.hpp. The functions throw base::Error for fields that are
/// missing or out of range.
namespace isoscale::results {

/// Translates the codes of a file into those of this program by the names of the enumerators, since
/// a file may number them differently.
inline std::vector<std::uint8_t> translated(const char* name, std::vector<std::uint8_t> codes,
                                            const std::vector<std::string>& theirs,
                                            const std::vector<std::string>& ours) {
  std::array<std::optional<std::uint8_t>, 256> meaning{};
  for (std::size_t code = 0; code < theirs.size(); ++code) {
    const auto found = std::ranges::find(ours, theirs[code]);
    if (found != ours.end()) meaning[code] = static_cast<std::uint8_t>(found - ours.begin());
  }
  for (std::uint8_t& code : codes) {
    if (!meaning[code]) {
      throw base::Error(fmt::format("dataset '{}' has a code whose name is unknown: {}", name,
                                    code < theirs.size() ? theirs[code] : "none"));
    }
    code = *meaning[code];
  }
  return codes;
}

template <class Value, class Source>
std::vector<Stored<Value>> get_values(const Source& from, const char* name) {
  if constexpr (std::is_enum_v<Value>) {
    auto read = from.read_codes(name);
    return translated(name, std::move(read.codes), read.values, code_names<Value>());
  } else if constexpr (std::is_same_v<Value, std::string>) {
    return from.read_texts(name);
  } else {
    return from.template read<Stored<Value>>(name);
  }
}

/// The rows of a table that is being read. The first dataset decides their number.
template <class Row>
class RowsToFill {
 public:
  explicit RowsToFill(std::string_view label) : label_(label) {}

  /// Returns the rows for a dataset of `count` elements. Throws base::Error unless there is one
  /// element for each row.
  std::vector<Row>& of(std::size_t count) {
    if (!known_) rows_.resize(count);
    known_ = true;
    require(rows_.size() == count, fmt::format("the columns of {} differ in length", label_));
    return rows_;
  }
  /// Returns the rows for a dataset of `total` elements in which those of row i begin at begin[i].
  /// Throws base::Error unless the rows' parts are in order and cover the dataset.
  std::vector<Row>& of(const char* name, const std::vector<std::uint64_t>& begin,
                       std::size_t total) {
    require(!begin.empty() && begin.front() == 0 && begin.back() == total &&
                std::ranges::is_sorted(begin),
            fmt::format("'{}' of {} is out of order", name, label_));
    return of(begin.size() - 1);
  }
  void require_same(std::size_t a, std::size_t b) const {
    require(a == b, fmt::format("the entries of {} differ in number", label_));
  }
  std::vector<Row> take() { return std::move(rows_); }

 private:
  std::string_view label_;
  std::vector<Row> rows_;
  bool known_ = false;
};

template <class Source, class Row, class Member>
void get_column(const Source& from, RowsToFill<Row>& rows, const Field<Member>& field,
                int /*minor*/) {
  using Value = MemberOf<Member, Row>;
  if constexpr (is_list<Value>) {
    auto lists = from.read_rows(field.name);
    std::vector<Row>& filled = rows.of(lists.size());
    for (std::size_t at = 0; at < filled.size(); ++at)
      field.member(filled[at]) = std::move(lists[at]);
  } else {
    auto values = get_values<Value>(from, field.name);
    std::vector<Row>& filled = rows.of(values.size());
    for (std::size_t at = 0; at < filled.size(); ++at) {
      restore<Value>(std::move(values[at]), field.member(filled[at]));
    }
  }
}

template <class Source, class Row, class... Eaches>
void get_column(const Source& from, RowsToFill<Row>& rows, const Lists<Eaches...>& field,
                int minor) {
  const std::vector<std::uint64_t> begin = from.template read<std::uint64_t>(field.name);
  std::optional<std::size_t> total;
  for_each_field(field.each, [&]<class List, class Member>(const Each<List, Member>& each) {
    using Value = MemberOf<Member, typename MemberOf<List, Row>::value_type>;
    if (!has_field(each, minor)) return;
    auto values = get_values<Value>(from, each.name);
    rows.require_same(values.size(), total.value_or(values.size()));
    total = values.size();
    std::vector<Row>& filled = rows.of(field.name, begin, values.size());
    for (std::size_t row = 0; row < filled.size(); ++row) {
      auto& list = each.list(filled[row]);
      list.resize(begin[row + 1] - begin[row]);
      for (std::size_t at = 0; at < list.size(); ++at) {
        restore<Value>(std::move(values[begin[row] + at]), each.member(list[at]));
      }
    }
  });
}

template <class Source, class Row, class Member>
void get_column(const Source& from, RowsToFill<Row>& rows, const Plays<Member>& field,
                int /*minor*/) {
  const auto count = from.template read<std::uint64_t>(field.count);
  const auto begin = from.template read<std::uint64_t>(field.begin);
  const auto values = from.template read<double>(field.value);
  std::vector<Row>& filled = rows.of(field.begin, begin, values.size());
  rows.of(count.size());
  for (std::size_t row = 0; row < filled.size(); ++row) {
    const std::uint64_t all = begin[row + 1] - begin[row];
    const std::uint64_t width = count[row] == 0 ? 0 : all / count[row];
    require(count[row] == 0 ? all == 0 : width > 0 && all % count[row] == 0,
            "a row's times do not fit its plays and ranks");
    for (std::uint64_t at = begin[row]; at < begin[row + 1]; at += width) {
      const auto play = values.begin() + static_cast<std::ptrdiff_t>(at);
      field.member(filled[row]).emplace_back(play, play + static_cast<std::ptrdiff_t>(width));
    }
  }
}

template <class Source, class Row, class Member>
void get_column(const Source& from, RowsToFill<Row>& rows, const Keys<Member>& field,
                int /*minor*/) {
  using Value = typename MemberOf<Member, Row>::mapped_type;
  const auto group = from.open_group(field.name);
  for (const std::string& key : group.names()) {
    const std::vector<Value> column = get_values<Value>(group, key.c_str());
    std::vector<Row>& filled = rows.of(column.size());
    for (std::size_t at = 0; at < filled.size(); ++at) {
      if constexpr (std::is_same_v<Value, double>) {
        if (!std::isnan(column[at])) field.member(filled[at]).emplace(key, column[at]);
      } else {
        if (!column[at].empty()) field.member(filled[at]).emplace(key, column[at]);
      }
    }
  }
}

template <class Source, class Row, class Member>
void get_column(const Source& from, RowsToFill<Row>& rows, const Interval<Member>& field,
                int /*minor*/) {
  const auto value = from.template read<double>(field.value);
  const auto lower = from.template read<double>(field.lower);
  const auto upper = from.template read<double>(field.upper);
  std::vector<Row>& filled = rows.of(value.size());
  rows.of(lower.size());
  rows.of(upper.size());
  for (std::size_t at = 0; at < filled.size(); ++at) {
    if (std::isnan(value[at])) continue;
    auto& made = field.member(filled[at]).emplace();
    made.value = value[at];
    restore(lower[at], made.lower);
    restore(upper[at], made.upper);
  }
}

/// Reads the rows of a table; `minor` is the minor schema version with which it was written.
template <class Row, class Source>
std::vector<Row> get_rows(const Source& from, int minor, std::string_view label) {
  RowsToFill<Row> rows{label};
  for_each_field(fields_of<Row>, [&](const auto& field) {
    if (has_field(field, minor)) get_column(from, rows, field, minor);
  });
  return rows.take();
}

template <class Source, class Value>
void get_attribute(const Source& from, const char* attribute, Value& value) {
  if constexpr (is_optional<Value>) {
    if (from.has_attribute(attribute)) get_attribute(from, attribute, value.emplace());
  } else if constexpr (std::is_same_v<Value, bool>) {
    value = from.flag(attribute);
  } else if constexpr (std::is_enum_v<Value>) {
    const std::vector<std::string> names = code_names<Value>();
    const std::string text = from.text(attribute);
    const auto found = std::ranges::find(names, text);
    require(found != names.end(),
            fmt::format("attribute '{}' has the unknown value '{}'", attribute, text));
    value = static_cast<Value>(found - names.begin());
  } else if constexpr (std::is_same_v<Value, std::string>) {
    value = from.text(attribute);
  } else if constexpr (std::is_same_v<Value, double>) {
    value = from.real(attribute);
  } else if constexpr (std::is_same_v<Value, std::uint64_t>) {
    value = from.natural(attribute);
  } else {
    const std::int64_t wide = from.integer(attribute);
    require(std::in_range<Value>(wide), fmt::format("attribute '{}' is out of range", attribute));
    value = static_cast<Value>(wide);
  }
}

template <class Source, class Record, class Member>
void get_field(const Source& from, Record& record, const Attribute<Member>& field, int /*minor*/) {
  get_attribute(from, field.name, field.member(record));
}

template <class Source, class Record, class Member>
void get_field(const Source& from, Record& record, const Pairs<Member>& field, int /*minor*/) {
  const auto group = from.open_group(field.name);
  for (const std::string& key : group.attribute_names())
    field.member(record)[key] = group.text(key);
}

template <class Source, class Record, class Member>
void get_field(const Source& from, Record& record, const Text<Member>& field, int /*minor*/) {
  field.member(record) = from.read_text(field.name);
}

template <class Source, class Record, class Member>
void get_field(const Source& from, Record& record, const Field<Member>& field, int /*minor*/) {
  using Value = typename MemberOf<Member, Record>::value_type;
  if constexpr (is_list<Value>) {
    field.member(record) = from.read_rows(field.name);
  } else {
    field.member(record) = get_values<Value>(from, field.name);
  }
}

template <class Source, class Record, class Member>
void get_field(const Source& from, Record& record, const Table<Member>& field, int minor) {
  using Row = typename MemberOf<Member, Record>::value_type;
  if (*field.name == '\0') {
    field.member(record) = get_rows<Row>(from, minor, field.label);
  } else {
    field.member(record) = get_rows<Row>(from.open_group(field.name), minor, field.label);
  }
}

/// Reads the fields of one record, by default all of them; fields that a file of this minor schema
/// version does not have keep their values.
template <class Source, class Record, class Fields = decltype(fields_of<Record>)>
void get_record(const Source& from, Record& record, int minor,
                const Fields& fields = fields_of<Record>) {
  for_each_field(fields, [&](const auto& field) {
    if (has_field(field, minor)) get_field(from, record, field, minor);
  });
}

}  // namespace isoscale::results
