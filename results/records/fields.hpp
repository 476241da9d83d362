// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "results/records/stored_values.hpp"

/// Defines the kinds of fields that describe a stored record. The tuple `fields_of<Record>` is the
/// only description of a record: the writer and the reader of the run file, the estimate of its
/// size, the summary, the gather over MPI and the tables of SCHEMA.md all use it.
///
/// Each kind writes and reads a member of one record (put, get), or a member of all rows of a table
/// as columns (put_rows, get_rows). `ranks` is the number of columns of datasets with one column
/// for each rank. `minor` is the minor schema version of the file; if the field was added by a
/// later version (`since`), it is not read, and the member keeps its value. Reading throws
/// base::Error for fields that are missing or out of range.
namespace isoscale::results {

/// The tuple of a record's fields; layout.hpp and others specialise it for each record.
template <class Record>
constexpr auto fields_of = nullptr;

/// Calls `act` with each field of a list.
template <class Fields, class Act>
constexpr void for_each_field(const Fields& fields, Act&& act) {
  std::apply([&](const auto&... field) { (act(field), ...); }, fields);
}

/// Returns a function that gives a reference to a member of a record. If several pointers to
/// members are given, they are followed in order, to a member of a member and so on.
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
/// Converted).
template <class Member, class To, class From>
constexpr auto converted(Member member, To to, From from) {
  return [=](auto& record) { return Converted{reach(member)(record), to, from}; };
}

/// Takes the place of a pointer to a member for lists of plain values: returns the entry itself.
inline constexpr auto itself = [](auto& entry) -> auto& { return entry; };

/// The type of a field's member in a record.
template <class Member, class Record>
using MemberOf =
    std::remove_cvref_t<decltype(std::declval<const Member&>()(std::declval<Record&>()))>;

/// True if a file of this minor schema version has the field.
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
  /// Returns the rows for a dataset of `total` elements, of which row i has those from begin[i] on.
  /// Throws base::Error unless the rows' parts are in order and cover the dataset.
  std::vector<Row>& of(const char* name, const std::vector<std::uint64_t>& begin,
                       std::size_t total) {
    require(!begin.empty() && begin.front() == 0 && begin.back() == total &&
                std::ranges::is_sorted(begin),
            "'{}' of {} is out of order", name, label_);
    return of(begin.size() - 1);
  }
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

/// A scalar attribute of the record's group; an absent optional has no attribute.
template <class Member>
struct Attribute {
  const char* name;
  Member member;
  std::string_view description;
  int since;

  template <class Sink, class Record>
  void put(Sink& into, const Record& record, std::size_t /*ranks*/) const {
    put_attribute(into, name, field_value(member(record)));
  }
  template <class Source, class Record>
  void get(const Source& from, Record& record, int /*minor*/) const {
    FieldValue<MemberOf<Member, Record>> value{};
    get_attribute(from, name, value);
    set_field_value(member(record), std::move(value));
  }
};

/// A group with one text attribute for each key of a map.
template <class Member>
struct Pairs {
  const char* name;
  Member member;

  template <class Sink, class Record>
  void put(Sink& into, const Record& record, std::size_t /*ranks*/) const {
    auto&& group = into.create_group(name);
    for (const auto& [key, value] : member(record)) group.set(key, value);
  }
  template <class Source, class Record>
  void get(const Source& from, Record& record, int /*minor*/) const {
    const auto group = from.open_group(name);
    for (const std::string& key : group.attribute_names()) member(record)[key] = group.text(key);
  }
};

/// A dataset. In a table it has one element for each row, or one row of elements if the member is a
/// list with an entry for each rank. In a single record it is one text, or a list.
template <class Member>
struct Field {
  const char* name;
  Member member;
  About about;
  int since = 0;
  std::string_view per{};  ///< "ranks" or "steps" if a record's list has one entry each

  template <class Sink, class Rows>
  void put_rows(Sink& into, const Rows& rows, std::size_t ranks) const {
    using Value = FieldValue<MemberOf<Member, const typename Rows::value_type>>;
    if constexpr (is_list<Value>) {
      Value all;
      for (const auto& row : rows) all.insert(all.end(), member(row).begin(), member(row).end());
      into.write_table(name, rows.size(), ranks, all, about);
    } else {
      std::vector<Stored<Value>> values;
      values.reserve(rows.size());
      for (const auto& row : rows) values.push_back(stored(field_value(member(row))));
      put_values<Value>(into, name, values, about);
    }
  }
  template <class Source, class Row>
  void get_rows(const Source& from, RowsToFill<Row>& rows, int /*minor*/) const {
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
  template <class Sink, class Record>
  void put(Sink& into, const Record& record, std::size_t ranks) const {
    if constexpr (std::is_same_v<MemberOf<Member, Record>, std::string>) {
      into.write_text(name, member(record), about);
    } else {
      Field<decltype(itself)>{name, itself, about}.put_rows(into, member(record), ranks);
    }
  }
  template <class Source, class Record>
  void get(const Source& from, Record& record, int minor) const {
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

/// A list of records, stored as one dataset for each field in the group `name`, or, if `name` is
/// empty, in the group of the record that has the list. `label` names the list in error messages.
template <class Member>
struct Table {
  const char* name;
  Member member;
  std::string_view label;
  int since;
  std::string_view rows;  ///< the name of the rows in SCHEMA.md: "curves"

  template <class Sink, class Record>
  void put(Sink& into, const Record& record, std::size_t ranks) const {
    if (*name == '\0') return results::put_rows(into, field_value(member(record)), ranks);
    auto&& group = into.create_group(name);
    results::put_rows(group, field_value(member(record)), ranks);
  }
  template <class Source, class Record>
  void get(const Source& from, Record& record, int minor) const {
    using Row = typename FieldValue<MemberOf<Member, Record>>::value_type;
    set_field_value(member(record),
                    *name == '\0' ? results::get_rows<Row>(from, minor, label)
                                  : results::get_rows<Row>(from.open_group(name), minor, label));
  }
};

/// A record that is stored in its own group; an absent optional has no group.
template <class Member>
struct Part {
  const char* name;
  Member member;
  int since;

  template <class Sink, class Record>
  void put(Sink& into, const Record& record, std::size_t ranks) const {
    const std::optional part{field_value(member(record))};
    if (!part) return;
    auto&& group = into.create_group(name);
    put_record(group, *part, ranks);
  }
  template <class Source, class Record>
  void get(const Source& from, Record& record, int minor) const {
    using Value = FieldValue<MemberOf<Member, Record>>;
    if constexpr (is_optional<Value>) {
      if (!from.has(name)) return;
      get_record(from.open_group(name), member(record).emplace(), minor);
    } else {
      Value part;
      get_record(from.open_group(name), part, minor);
      set_field_value(member(record), std::move(part));
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

/// Returns a field whose list has one entry for each item of the kind `per` ("ranks", "steps"), or
/// is empty.
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

/// Copies the values of attributes, pairs and fields from one record to another.
template <class Record, class Fields>
void copy_fields(const Record& from, Record& to, const Fields& fields) {
  for_each_field(fields, [&](const auto& field) {
    set_field_value(field.member(to), field_value(field.member(from)));
  });
}

}  // namespace isoscale::results
