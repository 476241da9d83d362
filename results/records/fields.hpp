// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

/// Defines the kinds of fields that describe a stored record. The tuple `fields_of<Record>` is the
/// only description of a record. The writer and the reader of the run file, the estimate of its
/// size, the summary and the gather over MPI all use it (get_fields.hpp and put_fields.hpp).
namespace isoscale::results {

/// The attributes that every dataset has. Counts and indices have the unit "1", text has "text".
struct About {
  std::string_view unit, description;
};

/// The tuple of a record's fields; layout.hpp and others specialise it for each record.
template <class Record>
constexpr auto fields_of = nullptr;

/// Returns a function that gives a reference to a member of a record, or, for several pointers, to
/// a member of a member and so on.
template <class... Members>
constexpr auto path(Members... members) {
  return [=](auto& record) -> auto& { return (record.*....*members); };
}

/// A scalar attribute of the record's group; an absent optional has no attribute.
template <class Member>
struct Attribute {
  const char* name;
  Member member;
  int since;  ///< the minor schema version that added it
};

/// A group with one text attribute for each key of a map.
template <class Member>
struct Pairs {
  const char* name;
  Member member;
};

/// A single text as a dataset.
template <class Member>
struct Text {
  const char* name;
  Member member;
  About about;
};

/// A dataset. In a table it has one element for each record, or one row if the member is a list
/// with an entry for each rank. In a single record it holds a list.
template <class Member>
struct Field {
  const char* name;
  Member member;
  About about;
  int since;
};

/// A list of records, stored as one dataset for each field in the group `name`, or, if `name` is
/// empty, in the group of the record that has the list. `label` names the list in errors.
template <class Member>
struct Table {
  const char* name;
  Member member;
  std::string_view label;
  int since;
};

/// One dataset for a member of the entries of lists. It holds the lists of all rows, one after
/// another.
template <class List, class Member>
struct Each {
  const char* name;
  List list;
  Member member;
  About about;
  int since;
};

/// A list that each row of a table has. Entries [begin[i], begin[i + 1]) of the datasets `each`
/// belong to row i, where `begin` is the dataset `name`.
template <class... Eaches>
struct Lists {
  const char* name;
  About about;
  std::tuple<Eaches...> each;
};

/// A list of equally long lists in each row, such as times by play and rank. Three datasets hold
/// the number of lists in each row, the positions where the values of each row begin, and all
/// values.
template <class Member>
struct Plays {
  const char *count, *begin, *value;
  Member member;
  About count_about, begin_about, value_about;
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
};

/// An optional value with its interval in each row, stored as three datasets with NaN where it is
/// absent.
template <class Member>
struct Interval {
  const char *value, *lower, *upper;
  Member member;
  About about;
};

/// Turns a pointer to a member into a function (see path()); returns a function unchanged.
template <class Member>
constexpr auto reach(Member member) {
  if constexpr (std::is_member_object_pointer_v<Member>) {
    return path(member);
  } else {
    return member;
  }
}

template <class Member>
constexpr auto attribute(const char* name, Member member, int since = 0) {
  return Attribute<decltype(reach(member))>{name, reach(member), since};
}

template <class Member>
constexpr auto pairs(const char* name, Member member) {
  return Pairs<decltype(reach(member))>{name, reach(member)};
}

template <class Member>
constexpr auto text(const char* name, Member member, std::string_view description) {
  return Text<decltype(reach(member))>{name, reach(member), {"text", description}};
}

template <class Member>
constexpr auto field(const char* name, Member member, std::string_view unit,
                     std::string_view description, int since = 0) {
  return Field<decltype(reach(member))>{name, reach(member), {unit, description}, since};
}

template <class Member>
constexpr auto table(const char* name, Member member, std::string_view label, int since = 0) {
  return Table<decltype(reach(member))>{name, reach(member), label, since};
}

/// A function for lists of plain values: it returns the entry itself.
inline constexpr auto itself = [](auto& entry) -> auto& { return entry; };

template <class List, class Member>
constexpr auto each(const char* name, List list, Member member, std::string_view unit,
                    std::string_view description, int since = 0) {
  return Each<decltype(reach(list)), decltype(reach(member))>{
      name, reach(list), reach(member), {unit, description}, since};
}

template <class... Eaches>
constexpr auto lists(const char* name, std::string_view description, Eaches... eaches) {
  return Lists<Eaches...>{name, {"1", description}, {eaches...}};
}

template <class Member>
constexpr auto keys(const char* name, Member member, std::string_view (*unit_of)(std::string_view),
                    std::string_view description) {
  return Keys<decltype(reach(member))>{name, reach(member), unit_of, description};
}

template <class Member>
constexpr auto interval(const char* value, const char* lower, const char* upper, Member member,
                        std::string_view unit, std::string_view description) {
  return Interval<decltype(reach(member))>{value, lower, upper, reach(member), {unit, description}};
}

/// Calls `act` with each field of a list.
template <class Fields, class Act>
constexpr void for_each_field(const Fields& fields, Act&& act) {
  std::apply([&](const auto&... field) { (act(field), ...); }, fields);
}

/// Copies the values of attributes, pairs and fields from one record to another.
template <class Record, class Fields>
void copy_fields(const Record& from, Record& to, const Fields& fields) {
  for_each_field(fields, [&](const auto& field) { field.member(to) = field.member(from); });
}

}  // namespace isoscale::results
