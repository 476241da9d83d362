// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "results/records/stored_values.hpp"

/// Defines the kinds of fields that describe a stored record. The tuple `fields_of<Record>` is the
/// only description of a record: the code that writes and reads run files, estimates their size,
/// makes summaries, gathers records over MPI and prints the tables of SCHEMA.md uses it.
///
/// Each kind of field writes and reads a member of one record (put, get), or a member of all rows
/// of a table as columns (put_rows, get_rows). `ranks` is the number of columns of datasets that
/// have a column for each rank. `minor` is the minor schema version of the file that is read; a
/// field of a later version (`since`) is not read, and its member keeps its value. Reading throws
/// base::Error for fields that are missing or out of range.
namespace isoscale::results {

/// The tuple of a record's fields. run_and_calibration_fields.hpp and other headers specialise it
/// for each record.
template <class Record>
constexpr auto fields_of = nullptr;

/// Calls `act` with each field of a tuple of fields.
template <class Fields, class Act>
constexpr void for_each_field(const Fields& fields, Act&& act) {
  std::apply([&](const auto&... field) { (act(field), ...); }, fields);
}

/// Returns a function that gives a reference to a member of a record, or, for several pointers, to
/// a member of that member and so on.
template <class... Members>
constexpr auto path(Members... members) {
  return [=](auto& record) -> auto& { return (record.*....*members); };
}

/// Turns a pointer to a member into a function (see path()); returns a function unchanged.
template <class Member>
constexpr auto reach(Member member) {
  if constexpr (std::is_member_object_pointer_v<Member>) {
    return path(member);
  } else {
    return member;
  }
}

/// Returns a function that gives a member together with its conversion to the stored form (see
/// Converted in stored_values.hpp): `to` makes the stored value, `from` sets the member from it.
template <class Member, class To, class From>
constexpr auto converted(Member member, To to, From from) {
  return [=](auto& record) { return Converted{reach(member)(record), to, from}; };
}

/// Replaces the pointer to a member for a table whose rows are plain values: returns the row.
inline constexpr auto itself = [](auto& entry) -> auto& { return entry; };

/// The type of a field's member in a record.
template <class Member, class Record>
using MemberOf =
    std::remove_cvref_t<decltype(std::declval<const Member&>()(std::declval<Record&>()))>;

/// True if a file of this minor schema version has the field (see `since`).
template <class Kind>
constexpr bool has_field(const Kind& field, int minor) {
  if constexpr (requires { field.since; }) return minor >= field.since;
  return true;
}

/// Writes the fields of one record, by default all of them.
template <class Sink, class Record, class Fields = decltype(fields_of<Record>)>
void put_record(Sink& into, const Record& record, std::size_t ranks = 0,
                const Fields& fields = fields_of<Record>) {
  for_each_field(fields, [&](const auto& field) { field.put(into, record, ranks); });
}

/// Reads the fields of one record, by default all of them.
template <class Source, class Record, class Fields = decltype(fields_of<Record>)>
void get_record(const Source& from, Record& record, int minor,
                const Fields& fields = fields_of<Record>) {
  for_each_field(fields, [&](const auto& field) {
    if (has_field(field, minor)) field.get(from, record, minor);
  });
}

/// Writes a dataset for each field of the rows.
template <class Sink, class Row, class Fields = decltype(fields_of<Row>)>
void put_rows(Sink& into, const std::vector<Row>& rows, std::size_t ranks = 0,
              const Fields& fields = fields_of<Row>) {
  for_each_field(fields, [&](const auto& field) { field.put_rows(into, rows, ranks); });
}

/// The rows of a table that is being read. The first dataset that is read determines their number.
template <class Row>
class RowsToFill {
 public:
  explicit RowsToFill(std::string_view label) : label_(label) {}

  /// Returns the rows for a dataset of `count` elements. Throws base::Error unless there is one
  /// element for each row.
  std::vector<Row>& of(std::size_t count) {
    if (!known_) rows_.resize(count);
    known_ = true;
    require(rows_.size() == count, "the columns of {} differ in length", label_);
    return rows_;
  }
  /// Divides `entries` among the rows: the list `member` of row i gets those from begin[i] to
  /// begin[i + 1], as the dataset `name` says. Throws base::Error unless these parts are in order
  /// and cover all entries.
  template <class Entries, class Member>
  void divide(const char* name, const std::vector<std::uint64_t>& begin, Entries entries,
              const Member& member) {
    require(!begin.empty() && begin.front() == 0 && begin.back() == entries.size() &&
                std::ranges::is_sorted(begin),
            "'{}' of {} is out of order", name, label_);
    const auto at = [&](std::size_t row) {
      return std::move_iterator{entries.begin() + static_cast<std::ptrdiff_t>(begin[row])};
    };
    std::vector<Row>& filled = of(begin.size() - 1);
    for (std::size_t row = 0; row < filled.size(); ++row) {
      set_field_value(member(filled[row]), Entries(at(row), at(row + 1)));
    }
  }
  /// Returns the rows, whose number an earlier dataset has determined.
  std::vector<Row>& known() { return rows_; }
  std::vector<Row> take() { return std::move(rows_); }
  [[nodiscard]] std::string_view label() const { return label_; }

 private:
  std::string_view label_;
  std::vector<Row> rows_;
  bool known_ = false;
};

/// Reads the rows of a table. `label` names the table in error messages.
template <class Row, class Source, class Fields = decltype(fields_of<Row>)>
std::vector<Row> get_rows(const Source& from, int minor, std::string_view label,
                          const Fields& fields = fields_of<Row>) {
  RowsToFill<Row> rows{label};
  for_each_field(fields, [&](const auto& field) {
    if (has_field(field, minor)) field.get_rows(from, rows, minor);
  });
  return rows.take();
}

/// A scalar attribute of the record's group. If the member is an optional without a value, the
/// attribute is not written.
template <class Member>
struct Attribute {
  const char* name;
  Member member;
  std::string_view description;
  int since;

  void put(auto& into, const auto& record, std::size_t /*ranks*/) const {
    put_attribute(into, name, field_value(member(record)));
  }
  template <class Record>
  void get(const auto& from, Record& record, int /*minor*/) const {
    FieldValue<MemberOf<Member, Record>> value{};
    get_attribute(from, name, value);
    set_field_value(member(record), std::move(value));
  }
};

/// A map that is stored as a group with one text attribute for each key.
template <class Member>
struct Pairs {
  const char* name;
  Member member;

  void put(auto& into, const auto& record, std::size_t /*ranks*/) const {
    auto&& group = into.create_group(name);
    for (const auto& [key, value] : member(record)) group.set(key, value);
  }
  template <class Record>
  void get(const auto& from, Record& record, int /*minor*/) const {
    const auto group = from.open_group(name);
    for (const std::string& key : group.attribute_names()) member(record)[key] = group.text(key);
  }
};

/// A dataset. In a table it has one element for each row, or a line of elements for each row if the
/// member is a list with an entry for each rank. In a single record it is one text, or a list,
/// whose entries are stored like the rows of a table.
template <class Member>
struct Field {
  const char* name;
  Member member;
  About about;
  int since = 0;
  std::string_view per{};  ///< "ranks" or "steps" if the member has an entry for each; else ""

  template <class Row>
  void put_rows(auto& into, const std::vector<Row>& rows, std::size_t ranks) const {
    using Value = FieldValue<MemberOf<Member, const Row>>;
    if constexpr (is_list<Value>) {
      Value all;
      for (const auto& row : rows) all.insert(all.end(), member(row).begin(), member(row).end());
      into.write(name, {rows.size(), ranks}, std::span{std::as_const(all)}, about);
    } else {
      std::vector<Stored<Value>> values;
      values.reserve(rows.size());
      for (const auto& row : rows) values.push_back(stored(field_value(member(row))));
      put_values<Value>(into, name, values, about);
    }
  }
  template <class Row>
  void get_rows(const auto& from, RowsToFill<Row>& rows, int /*minor*/) const {
    using Value = FieldValue<MemberOf<Member, Row>>;
    const auto fill = [&](auto values, auto to_value) {
      std::vector<Row>& filled = rows.of(values.size());
      for (std::size_t at = 0; at < filled.size(); ++at) {
        set_field_value(member(filled[at]), to_value(std::move(values[at])));
      }
    };
    if constexpr (is_list<Value>) {
      fill(from.read_rows(name), [](Value row) { return row; });
    } else {
      fill(get_values<Value>(from, name), restored<Value>);
    }
  }
  void put(auto& into, const auto& record, std::size_t ranks) const {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(member(record))>, std::string>) {
      into.write(name, {}, std::span{&member(record), 1}, about);
    } else {
      Field<decltype(itself)>{name, itself, about}.put_rows(into, member(record), ranks);
    }
  }
  template <class Record>
  void get(const auto& from, Record& record, int minor) const {
    using Value = MemberOf<Member, Record>;
    if constexpr (std::is_same_v<Value, std::string>) {
      member(record) = from.read_text(name);
    } else {
      RowsToFill<typename Value::value_type> rows{name};
      Field<decltype(itself)>{name, itself, about}.get_rows(from, rows, minor);
      member(record) = rows.take();
    }
  }
};

/// A list of records, stored as one dataset for each field in the group `name`, or in the group of
/// the record itself if `name` is empty. `label` names the list in error messages.
template <class Member>
struct Table {
  const char* name;
  Member member;
  std::string_view label;
  int since;
  std::string_view rows;  ///< the name of the rows in SCHEMA.md: "curves"

  void put(auto& into, const auto& record, std::size_t ranks) const {
    if (*name == '\0') return results::put_rows(into, member(record), ranks);
    auto&& group = into.create_group(name);
    results::put_rows(group, member(record), ranks);
  }
  template <class Record>
  void get(const auto& from, Record& record, int minor) const {
    using Row = typename MemberOf<Member, Record>::value_type;
    member(record) = *name == '\0' ? results::get_rows<Row>(from, minor, label)
                                   : results::get_rows<Row>(from.open_group(name), minor, label);
  }
};

/// A record that is stored in its own group. If the member is an optional without a value, the
/// group is not written.
template <class Member>
struct Part {
  const char* name;
  Member member;
  int since;

  template <class Record>
  void put(auto& into, const Record& record, std::size_t ranks) const {
    if constexpr (is_optional<MemberOf<Member, const Record>>) {
      if (!member(record)) return;
      auto&& group = into.create_group(name);
      put_record(group, *member(record), ranks);
    } else {
      auto&& group = into.create_group(name);
      put_record(group, member(record), ranks);
    }
  }
  template <class Record>
  void get(const auto& from, Record& record, int minor) const {
    if constexpr (is_optional<MemberOf<Member, Record>>) {
      if (from.has(name)) get_record(from.open_group(name), member(record).emplace(), minor);
    } else {
      get_record(from.open_group(name), member(record), minor);
    }
  }
};

template <class Member>
constexpr auto attribute(const char* name, Member member, std::string_view description,
                         int since = 0) {
  return Attribute<decltype(reach(member))>{name, reach(member), description, since};
}

template <class Member>
constexpr auto pairs(const char* name, Member member) {
  return Pairs<decltype(reach(member))>{name, reach(member)};
}

template <class Member>
constexpr auto field(const char* name, Member member, std::string_view unit,
                     std::string_view description, int since = 0) {
  return Field<decltype(reach(member))>{name, reach(member), {unit, description}, since};
}

/// Returns a field whose member is a list, empty or with an entry for each of `per` (see Field).
template <class Member>
constexpr auto field_per(std::string_view per, const char* name, Member member,
                         std::string_view unit, std::string_view description, int since = 0) {
  return Field<decltype(reach(member))>{name, reach(member), {unit, description}, since, per};
}

template <class Member>
constexpr auto table(const char* name, Member member, std::string_view label, int since = 0,
                     std::string_view rows = "rows") {
  return Table<decltype(reach(member))>{name, reach(member), label, since, rows};
}

template <class Member>
constexpr auto part(const char* name, Member member, int since = 0) {
  return Part<decltype(reach(member))>{name, reach(member), since};
}

/// Copies the members that the fields describe from one record to another.
template <class Record, class Fields>
void copy_fields(const Record& from, Record& to, const Fields& fields) {
  for_each_field(fields, [&](const auto& field) {
    set_field_value(field.member(to), field_value(field.member(from)));
  });
}

}  // namespace isoscale::results
