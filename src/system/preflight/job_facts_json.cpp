// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "system/preflight/job_facts_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "system/preflight/job_fields.hpp"

namespace isoscale::system {
namespace {

using nlohmann::json;

template <class T>
concept Struct = requires(const T* facts) { fields(facts, [](const char*, auto) {}); };

// One overload for each kind of field; null = absent.

json json_of(const std::string& value) { return value; }
json json_of(bool value) { return value; }  // NOLINT: the value itself
json json_of(int value) { return value; }
json json_of(std::int64_t value) { return value; }
json json_of(double value) { return std::isfinite(value) ? json(value) : json(); }

template <class T>
json json_of(const std::optional<T>& value);
template <class T>
json json_of(const std::vector<T>& values);
template <class T>
json json_of(const std::map<std::string, T>& values);

/// Fields that have their default are left out.
template <Struct T>
json json_of(const T& facts) {
  json object = json::object();
  const T untold;
  fields(&facts, [&](const char* key, auto member) {
    json value = json_of(facts.*member);
    if (value != json_of(untold.*member)) object[key] = std::move(value);
  });
  return object;
}

template <class T>
json json_of(const std::optional<T>& value) {
  return value ? json_of(*value) : json();
}

template <class T>
json json_of(const std::vector<T>& values) {
  json array = json::array();
  for (const T& value : values) array.push_back(json_of(value));
  return array;
}

template <class T>
json json_of(const std::map<std::string, T>& values) {
  json object = json::object();
  for (const auto& [key, value] : values) object[key] = json_of(value);
  return object;
}

[[noreturn]] void refuse(const std::string& where, const std::string& problem) {
  throw base::Error(fmt::format("job facts{}{}: {}", where.empty() ? "" : ", ", where, problem));
}

std::string below(const std::string& where, std::string_view key) {
  return where.empty() ? std::string{key} : fmt::format("{}.{}", where, key);
}

void read(std::string& value, const json& from, const std::string& where) {
  if (!from.is_string()) refuse(where, "a text is expected");
  value = from.get<std::string>();
}

void read(bool& value, const json& from, const std::string& where) {
  if (!from.is_boolean()) refuse(where, "true or false is expected");
  value = from.get<bool>();
}

void read(double& value, const json& from, const std::string& where) {
  if (!from.is_number()) refuse(where, "a number is expected");
  value = from.get<double>();
}

template <std::signed_integral T>
void read(T& value, const json& from, const std::string& where) {
  const auto fits = [](auto number) { return std::in_range<T>(number); };
  const bool whole = from.is_number_unsigned()
                         ? fits(from.get<std::uint64_t>())
                         : from.is_number_integer() && fits(from.get<std::int64_t>());
  if (!whole) refuse(where, "a whole number is expected");
  value = from.get<T>();
}

template <class T>
void read(std::optional<T>& value, const json& from, const std::string& where);
template <class T>
void read(std::vector<T>& values, const json& from, const std::string& where);
template <class T>
void read(std::map<std::string, T>& values, const json& from, const std::string& where);

template <Struct T>
void read(T& facts, const json& from, const std::string& where) {
  if (!from.is_object()) refuse(where, "an object is expected");
  std::vector<std::string_view> names;
  fields(&facts, [&](const char* key, auto member) {
    names.emplace_back(key);
    if (from.contains(key)) read(facts.*member, from.at(key), below(where, key));
  });
  for (const auto& item : from.items()) {
    if (std::ranges::find(names, item.key()) != names.end()) continue;
    refuse(where, fmt::format("there is no field {}{}", base::quoted(item.key()),
                              base::did_you_mean(item.key(), names)));
  }
}

template <class T>
void read(std::optional<T>& value, const json& from, const std::string& where) {
  read(value.emplace(), from, where);
}

template <class T>
void read(std::vector<T>& values, const json& from, const std::string& where) {
  if (!from.is_array()) refuse(where, "an array is expected");
  values.clear();
  for (std::size_t i = 0; i < from.size(); ++i) {
    read(values.emplace_back(), from[i], fmt::format("{}[{}]", where, i));
  }
}

template <class T>
void read(std::map<std::string, T>& values, const json& from, const std::string& where) {
  if (!from.is_object()) refuse(where, "an object is expected");
  values.clear();
  for (const auto& item : from.items()) {
    read(values[item.key()], item.value(), below(where, base::printable(item.key())));
  }
}

}  // namespace

std::string to_json(const JobFacts& facts) {
  return json_of(facts).dump(-1, ' ', false, json::error_handler_t::replace);
}

JobFacts job_facts_from_json(std::string_view text) {
  const json parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded()) refuse("", "this is not JSON");
  JobFacts facts;
  read(facts, parsed, "");
  return facts;
}

}  // namespace isoscale::system
