// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "mesh/mesh.hpp"
#include "units/quantity.hpp"

/// Converts values of records to the form in which they are stored, and back. A Sink or Source is a
/// group of an HDF5 file (hdf5.hpp), or a JSON object (records_as_json_and_cbor.hpp), which has the
/// functions of hdf5::Group that records need.
namespace isoscale::results {

/// The attributes that every dataset has. Counts and indices have the unit "1", text has "text".
struct About {
  std::string_view unit, description;
};

/// The extents of a dataset; there are none if it holds a single value.
using Dimensions = std::initializer_list<std::size_t>;

/// Throws base::Error with the formatted text unless the condition holds.
template <class... Values>
void require(bool holds, fmt::format_string<Values...> text, Values&&... values) {  // NOLINT
  if (!holds) throw base::Error(fmt::format(text, std::forward<Values>(values)...));
}

/// Returns the text with every sequence that is not well-formed UTF-8 (RFC 3629) replaced by
/// U+FFFD.
[[nodiscard]] inline std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const base::Character next = base::next_character(text);
    out += next.code ? text.substr(0, next.bytes) : "\xEF\xBF\xBD";
    text.remove_prefix(next.bytes);
  }
  return out;
}

template <class Value>
constexpr bool is_list = false;
template <class Value>
constexpr bool is_list<std::vector<Value>> = true;
template <class Value>
constexpr bool is_optional = false;
template <class Value>
constexpr bool is_optional<std::optional<Value>> = true;

/// A member that is stored as a value of another type (a status text for a bool, a list of tuples
/// for parallel lists). `to` makes this value from the member, and `from` sets the member from it.
template <class Target, class To, class From>
struct Converted {
  Target& target;  ///< not owned
  To to;
  From from;
};
template <class Target, class To, class From>
Converted(Target&, To, From) -> Converted<Target, To, From>;  // for clang 16
template <class Value>
constexpr bool is_converted = false;
template <class Target, class To, class From>
constexpr bool is_converted<Converted<Target, To, From>> = true;

/// Returns the value that is stored for a member: itself, or its converted form.
template <class Value>
decltype(auto) field_value(const Value& value) {
  if constexpr (is_converted<Value>) {
    return value.to(value.target);
  } else {
    return (value);
  }
}
template <class Value>
using FieldValue = std::remove_cvref_t<decltype(field_value(std::declval<const Value&>()))>;

/// Sets a member from the value that is stored for it.
template <class Member>
void set_field_value(Member&& member, FieldValue<std::remove_cvref_t<Member>> value) {
  if constexpr (is_converted<std::remove_cvref_t<Member>>) {
    member.from(std::move(value), member.target);
  } else {
    member = std::move(value);
  }
}

/// Returns the form in which a value is stored in a dataset: the code of an enumerator, 0 or 1 for
/// a bool, the bits of a set of axes, the number of nanoseconds, NaN for an absent double, -1 for
/// an absent integer. Other values are stored as they are.
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

/// Returns a value from its stored form. Throws base::Error for unknown axes and counts below -1.
template <class Value>
Value restored(Stored<Value> from) {
  if constexpr (std::is_enum_v<Value>) {
    return static_cast<Value>(from);
  } else if constexpr (std::is_same_v<Value, mesh::AxisSet>) {
    require((from & ~mesh::every_axis.bits()) == 0, "a group has unknown axes");
    return mesh::AxisSet::from_bits(from);
  } else if constexpr (std::is_same_v<Value, bool>) {
    return from != 0;
  } else if constexpr (std::is_same_v<Value, std::optional<double>>) {
    return std::isnan(from) ? std::nullopt : std::optional{from};
  } else if constexpr (std::is_same_v<Value, std::optional<std::int64_t>>) {
    require(from >= -1, "a count is less than nothing");
    return from < 0 ? std::nullopt : std::optional{from};
  } else {
    return Value{std::move(from)};
  }
}

/// The number of values of the enumeration Code, whose names name() gives. It is 0 for enumerations
/// that are not stored, and for those for which code_names() is specialised.
template <class Code>
inline constexpr std::size_t code_count = 0;

/// Returns the names of enumerators in the order of their codes; the file stores the names with the
/// codes.
template <class Code>
std::vector<std::string> code_names() {
  std::vector<std::string> names;
  for (std::size_t code = 0; code < code_count<Code>; ++code) {
    names.emplace_back(name(static_cast<Code>(code)));
  }
  return names;
}

/// Converts the codes of a file, which may differ from those of this program, by the names of the
/// enumerators. Throws base::Error for a code whose name this program does not know.
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

template <class Value, class Sink>
void put_values(Sink& into, const char* name, const std::vector<Stored<Value>>& values,
                const About& about) {
  if constexpr (std::is_enum_v<Value>) {
    into.write(name, {values.size()}, std::span{values}, about, code_names<Value>());
  } else {
    into.write(name, {values.size()}, std::span{values}, about);
  }
}

template <class Value, class Source>
std::vector<Stored<Value>> get_values(const Source& from, const char* name) {
  if constexpr (std::is_enum_v<Value>) {
    auto codes = from.template read<std::uint8_t>(name);
    return translated(name, std::move(codes), from.names_of_codes(name), code_names<Value>());
  } else {
    return from.template read<Stored<Value>>(name);
  }
}

template <class Sink, class Value>
void put_attribute(Sink& into, const char* attribute, const Value& value) {
  if constexpr (is_optional<Value>) {
    if (value) put_attribute(into, attribute, *value);
  } else if constexpr (std::is_enum_v<Value>) {
    into.set(attribute, name(value));
  } else if constexpr (std::is_same_v<Value, int>) {
    into.set(attribute, std::int64_t{value});
  } else {
    into.set(attribute, value);
  }
}

/// Sets a value from an attribute. A missing attribute leaves an optional empty. Throws if the
/// attribute has another type, an unknown name of an enumerator or a number out of range, or if it
/// is missing for a value that is not optional.
template <class Source, class Value>
void get_attribute(const Source& from, const char* attribute, Value& value) {
  if constexpr (is_optional<Value>) {
    if (from.has_attribute(attribute)) get_attribute(from, attribute, value.emplace());
  } else if constexpr (std::is_enum_v<Value>) {
    const std::vector<std::string> names = code_names<Value>();
    const std::string text = from.text(attribute);
    const auto found = std::ranges::find(names, text);
    require(found != names.end(), "attribute '{}' has the unknown value '{}'", attribute, text);
    value = static_cast<Value>(found - names.begin());
  } else if constexpr (std::is_same_v<Value, std::string>) {
    value = from.text(attribute);
  } else if constexpr (std::is_same_v<Value, int>) {
    const auto wide = from.template get<std::int64_t>(attribute);
    require(std::in_range<int>(wide), "attribute '{}' is out of range", attribute);
    value = static_cast<int>(wide);
  } else {
    value = from.template get<Value>(attribute);
  }
}

}  // namespace isoscale::results
