// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "results/records/fields.hpp"
#include "results/records/run_data.hpp"

namespace isoscale::results {

/// A JSON object that fields (fields.hpp) write and read in place of a group of a file. Datasets of
/// numbers become bytes, which only binary forms of JSON (such as CBOR) can hold. Reading throws
/// json::exception or base::Error for fields that are missing or of another type.
class JsonObject {
 public:
  using json = nlohmann::json;
  explicit JsonObject(json& object) : object_(object) {}

  // Invalid UTF-8 is replaced in the same way as in the HDF5 data, so that a summary and the data
  // hold the same text.
  void set(const std::string& name, std::string_view text) const {
    object_[valid_utf8(name)] = valid_utf8(text);
  }
  template <class Number>
    requires std::is_arithmetic_v<Number>
  void set(const std::string& name, Number number) const {
    object_[name] = number;
  }
  [[nodiscard]] JsonObject create_group(const std::string& name) const {
    return JsonObject{object_[name] = json::object()};
  }
  template <class Value>
  void write(const std::string& name, Dimensions /*dimensions*/, std::span<const Value> values,
             const About& /*about*/, std::span<const std::string> /*names*/ = {}) const {
    if constexpr (std::is_same_v<Value, std::string>) {
      json& list = object_[name] = json::array();
      for (const std::string& text : values) list.push_back(valid_utf8(text));
    } else {
      const auto bytes = std::as_bytes(values);
      const auto* const begin = reinterpret_cast<const std::uint8_t*>(bytes.data());  // NOLINT
      object_[name] = json::binary(std::vector<std::uint8_t>(begin, begin + bytes.size()));
    }
  }

  [[nodiscard]] bool has_attribute(const std::string& name) const { return object_.contains(name); }
  [[nodiscard]] std::string text(const std::string& name) const {
    return object_.at(name).get<std::string>();
  }
  template <class Number>
  [[nodiscard]] Number get(const std::string& name) const {
    const json& value = object_.at(name);
    if constexpr (std::is_same_v<Number, double>) {  // JSON stores NaN and infinity as null
      if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
    } else if constexpr (!std::is_same_v<Number, bool>) {
      require(value.is_number_integer(), "a number is not whole");
      require(!std::is_unsigned_v<Number> || value.is_number_unsigned(),
              "a number is out of range");
    }
    return value.get<Number>();
  }
  [[nodiscard]] JsonObject open_group(const std::string& name) const {
    return JsonObject{object_.at(name)};
  }
  [[nodiscard]] std::vector<std::string> attribute_names() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : object_.get_ref<const json::object_t&>()) {
      names.push_back(name);
    }
    return names;
  }
  [[nodiscard]] std::vector<std::string> names() const { return attribute_names(); }
  template <class Value>
  [[nodiscard]] std::vector<Value> read(const std::string& name) const {
    if constexpr (std::is_same_v<Value, std::string>) {
      return object_.at(name).get<std::vector<std::string>>();
    } else {
      const std::vector<std::uint8_t>& bytes = object_.at(name).get_binary();
      require(bytes.size() % sizeof(Value) == 0, "a dataset ends within a number");
      std::vector<Value> values(bytes.size() / sizeof(Value));
      if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
      return values;
    }
  }

 private:
  json& object_;  ///< not owned
};

/// Packs a record, or a list of records, into bytes (CBOR) to send it to another rank, which runs
/// the same program on the same kind of machine.
template <class Record>
[[nodiscard]] std::string packed(const Record& record) {
  nlohmann::json object = nlohmann::json::object();
  JsonObject into{object};
  if constexpr (is_list<Record>) {
    put_rows(into, record);
  } else {
    put_record(into, record);
  }
  std::string bytes;
  nlohmann::json::to_cbor(object, bytes);
  return bytes;
}

/// Returns what was packed into these bytes. Throws base::Error if it cannot be read.
template <class Record>
[[nodiscard]] Record unpacked(std::span<const std::byte> bytes) {
  try {
    const auto* const begin = reinterpret_cast<const char*>(bytes.data());  // NOLINT
    nlohmann::json object = nlohmann::json::from_cbor(begin, begin + bytes.size());
    const JsonObject from{object};
    if constexpr (is_list<Record>) {
      return get_rows<typename Record::value_type>(from, schema_minor, "packed rows");
    } else {
      Record record;
      get_record(from, record, schema_minor);
      return record;
    }
  } catch (const nlohmann::json::exception&) {
    throw base::Error("a rank sent a record that cannot be read");
  }
}

}  // namespace isoscale::results
