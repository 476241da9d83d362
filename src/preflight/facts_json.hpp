// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "results/records/stored_values.hpp"
#include "units/quantity.hpp"

/// Lists the fields of a struct of facts by name. The one list serves both to write the struct as
/// JSON and to read it. The macro must be used in the struct's namespace.
#define ISOSCALE_FACTS(Type, ...)                                                \
  template <class Struct, class Act>                                             \
    requires std::same_as<std::remove_const_t<Struct>, Type>                     \
  void for_each_fact(Struct& facts, const Act& act) {                            \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(ISOSCALE_ACT_ON_FACT, __VA_ARGS__)) \
  }
#define ISOSCALE_ACT_ON_FACT(member) act(#member, facts.member);

/// Writes structs of facts as JSON, and reads them. A field is left out if its value is absent or
/// the default.
namespace isoscale::preflight {

template <class T>
concept Facts = requires(T& facts) { for_each_fact(facts, [](const char*, const auto&) {}); };

/// Returns a value as JSON; null for an absent value and for a number that is not finite. In
/// objects, fields that have their default value are left out.
template <class T>
nlohmann::json json_of(const T& value) {
  using nlohmann::json;
  if constexpr (Facts<T>) {
    json object = json::object();
    for_each_fact(value, [&](const char* name, const auto& fact) { object[name] = json_of(fact); });
    const T without_facts;
    for_each_fact(without_facts, [&](const char* name, const auto& fact) {
      if (object[name] == json_of(fact)) object.erase(name);
    });
    return object;
  } else if constexpr (results::is_list<T>) {
    json array = json::array();
    for (const auto& item : value) array.push_back(json_of(item));
    return array;
  } else if constexpr (results::is_optional<T>) {
    return value ? json_of(*value) : json();
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::isfinite(value) ? json(value) : json();
  } else if constexpr (std::is_same_v<T, units::Bytes>) {
    return value.value();
  } else {
    return value;
  }
}

template <class T>
[[nodiscard]] std::string facts_text(const T& facts) {
  return json_of(facts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <class T>
bool is_integer(const nlohmann::json& from) {
  if (from.is_number_unsigned()) return std::in_range<T>(from.get<std::uint64_t>());
  return from.is_number_integer() && std::in_range<T>(from.get<std::int64_t>());
}

/// Reads a value that json_of() wrote. Throws base::Error or json::exception if the JSON is not of
/// the value's type, or if a number is out of the type's range.
template <class T>
void read_facts(T& value, const nlohmann::json& from) {
  if constexpr (Facts<T>) {
    results::require(from.is_object(), "facts: an object is expected");
    for_each_fact(value, [&](const char* name, auto& fact) {
      if (from.contains(name)) read_facts(fact, from.at(name));
    });
  } else if constexpr (results::is_list<T>) {
    results::require(from.is_array(), "facts: an array is expected");
    value.clear();
    for (const nlohmann::json& item : from) read_facts(value.emplace_back(), item);
  } else if constexpr (requires { typename T::mapped_type; }) {
    results::require(from.is_object(), "facts: an object is expected");
    value.clear();
    for (const auto& [key, item] : from.items()) read_facts(value[key], item);
  } else if constexpr (results::is_optional<T>) {
    read_facts(value.emplace(), from);
  } else if constexpr (std::is_same_v<T, units::Bytes>) {
    std::uint64_t bytes = 0;
    read_facts(bytes, from);
    value = T{bytes};
  } else {
    // The JSON library silently converts any number to an integer, so the number is checked here.
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      results::require(is_integer<T>(from), "facts: a whole number of its type is expected");
    }
    from.get_to(value);
  }
}

}  // namespace isoscale::preflight
