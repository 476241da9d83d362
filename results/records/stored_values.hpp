// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "mesh/mesh.hpp"
#include "units/quantity.hpp"

/// Converts values of records to the form in which they are stored, and back.
namespace isoscale::results {

inline void require(bool holds, std::string_view what) {  // NOLINT: the condition is boolean
  if (!holds) throw base::Error(std::string{what});
}

/// Returns the form in which a value is stored in a dataset: codes of enumerators, NaN and -1 for
/// absent optionals.
template <class Value>
auto stored(const Value& value) {
  if constexpr (std::is_enum_v<Value> || std::is_same_v<Value, bool>) {
    return static_cast<std::uint8_t>(value);
  } else if constexpr (std::is_same_v<Value, mesh::AxisSet>) {
    return value.bits();
  } else if constexpr (std::is_same_v<Value, units::Nanoseconds>) {
    return value.value();
  } else if constexpr (std::is_same_v<Value, std::optional<double>>) {
    return value.value_or(std::numeric_limits<double>::quiet_NaN());
  } else if constexpr (std::is_same_v<Value, std::optional<std::int64_t>>) {
    return value.value_or(-1);
  } else {
    return value;
  }
}

template <class Value>
using Stored = decltype(stored(std::declval<const Value&>()));

/// Sets a value from its stored form. Throws base::Error if no value has this stored form, for
/// example if it has unknown axes.
template <class Value>
void restore(Stored<Value> from, Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    value = static_cast<Value>(from);
  } else if constexpr (std::is_same_v<Value, mesh::AxisSet>) {
    require((from & ~mesh::every_axis.bits()) == 0, "a group has unknown axes");
    value = mesh::AxisSet::from_bits(from);
  } else if constexpr (std::is_same_v<Value, bool>) {
    value = from != 0;
  } else if constexpr (std::is_same_v<Value, std::optional<double>>) {
    value = std::isnan(from) ? std::nullopt : std::optional{from};
  } else if constexpr (std::is_same_v<Value, std::optional<std::int64_t>>) {
    require(from >= -1, "a count is less than nothing");
    value = from < 0 ? std::nullopt : std::optional{from};
  } else {
    value = Value{std::move(from)};
  }
}

/// The type that a field's member has in a record.
template <class Member, class Record>
using MemberOf =
    std::remove_cvref_t<decltype(std::declval<const Member&>()(std::declval<Record&>()))>;

template <class Value>
constexpr bool is_list = false;
template <class Value>
constexpr bool is_list<std::vector<Value>> = true;
template <class Value>
constexpr bool is_optional = false;
template <class Value>
constexpr bool is_optional<std::optional<Value>> = true;

/// True if a file of this minor schema version has the field.
template <class Kind>
constexpr bool has_field(const Kind& field, int minor) {
  if constexpr (requires { field.since; }) return minor >= field.since;
  return true;
}

}  // namespace isoscale::results
