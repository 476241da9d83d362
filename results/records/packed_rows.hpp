// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "results/records/get_fields.hpp"
#include "results/records/put_fields.hpp"

/// Packs tables of records into bytes, by the same fields as in a file, to send them to another
/// rank. Both ranks run the same program on the same kind of machine, so no byte order is converted
/// and nothing is checked.
namespace isoscale::results {

/// The bytes of datasets, one after another. Each has its number of elements, then the elements.
class PackedFields {
 public:
  PackedFields() = default;
  explicit PackedFields(std::span<const std::byte> bytes) : bytes_(bytes.begin(), bytes.end()) {}

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  template <class Value>
  void write(const std::string& /*name*/, std::span<const Value> values, const About& /*about*/) {
    const std::uint64_t count = values.size();
    append(std::as_bytes(std::span{&count, 1}));
    append(std::as_bytes(values));
  }
  void write_texts(const std::string& name, const std::vector<std::string>& texts,
                   const About& about) {
    std::vector<std::uint64_t> lengths;
    std::vector<std::uint8_t> letters;
    for (const std::string& text : texts) {
      lengths.push_back(text.size());
      letters.insert(letters.end(), text.begin(), text.end());
    }
    write(name, std::span<const std::uint64_t>{lengths}, about);
    write(name, std::span<const std::uint8_t>{letters}, about);
  }

  template <class Value>
  [[nodiscard]] std::vector<Value> read(const std::string& /*name*/) const {
    std::vector<Value> values(taken<std::uint64_t>(1).front());
    return values.empty() ? values : taken<Value>(values.size());
  }
  [[nodiscard]] std::vector<std::string> read_texts(const std::string& name) const {
    const auto lengths = read<std::uint64_t>(name);
    const auto letters = read<std::uint8_t>(name);
    std::vector<std::string> texts;
    auto at = letters.begin();
    for (const std::uint64_t length : lengths) {
      const auto end = at + static_cast<std::ptrdiff_t>(length);
      texts.emplace_back(at, end);
      at = end;
    }
    return texts;
  }

 private:
  void append(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  template <class Value>
  [[nodiscard]] std::vector<Value> taken(std::size_t count) const {
    std::vector<Value> values(count);
    std::memcpy(values.data(), bytes_.data() + at_, count * sizeof(Value));
    at_ += count * sizeof(Value);
    return values;
  }

  std::vector<std::byte> bytes_;
  mutable std::size_t at_ = 0;  ///< position of the next dataset to be read
};

template <class Row>
[[nodiscard]] PackedFields packed(const std::vector<Row>& rows) {
  PackedFields fields;
  put_rows(fields, rows);
  return fields;
}

template <class Row>
[[nodiscard]] std::vector<Row> unpacked(std::span<const std::byte> bytes) {
  return get_rows<Row>(PackedFields{bytes}, schema_minor, "packed rows");
}

}  // namespace isoscale::results
