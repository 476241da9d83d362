// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "analysis/render/json_values.hpp"
#include "results/records/composite_fields.hpp"

/// Writes records of run files as JSON, using their lists of fields (fields.hpp), so that a new
/// stored field is in the report without further code. The keys are the fields' names in the file,
/// and the values are in SI units. An unknown value or an empty text is null.
namespace isoscale::analysis::render {

/// Returns a JSON object with the fields of a record, by default all of them. If a field's name
/// begins with `prefix`, its key is the rest of the name.
template <class Record, class Fields = decltype(results::fields_of<Record>)>
[[nodiscard]] nlohmann::ordered_json record_json(const Record& record,
                                                 const Fields& fields = results::fields_of<Record>,
                                                 std::string_view prefix = "");

template <class Record, class Field>
nlohmann::ordered_json field_json(const Record& record, const Field& field) {
  const auto& value = results::field_value(field.member(record));
  if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(value)>>) {
    return name(value);
  } else {
    return value_json(value);
  }
}

template <class Record, class Member>
nlohmann::ordered_json field_json(const Record& record, const results::Table<Member>& field) {
  return list_json(field.member(record), [](const auto& row) { return record_json(row); });
}

/// Writes a field of type results::Lists, which is a list in each row of a table. The field is
/// named like the dataset with the offsets of these lists, for example sample_begin; from this name
/// come the list's key in JSON, `samples`, and the prefix sample_, which its entries' keys lose.
template <class Record, class List, class Fields>
nlohmann::ordered_json field_json(const Record& record, const results::Lists<List, Fields>& field) {
  const std::string_view name = field.name;
  const std::string_view prefix = name.substr(0, name.rfind("begin"));
  return list_json(results::field_value(field.member(record)),
                   [&](const auto& entry) { return record_json(entry, field.fields, prefix); });
}

template <class Field>
std::string json_key(const Field& field) {
  return field.name;
}
template <class List, class Fields>
std::string json_key(const results::Lists<List, Fields>& field) {
  const std::string name = field.name;
  return name.substr(0, name.rfind("_begin")) + "s";
}

template <class Record, class Fields>
nlohmann::ordered_json record_json(const Record& record, const Fields& fields,
                                   std::string_view prefix) {
  auto object = nlohmann::ordered_json::object();
  results::for_each_field(fields, [&](const auto& field) {
    std::string key = json_key(field);
    if (key.starts_with(prefix)) key.erase(0, prefix.size());
    object[key] = field_json(record, field);
  });
  return object;
}

}  // namespace isoscale::analysis::render
