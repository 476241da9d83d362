// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "program/low_precision.hpp"
#include "tests/executor/sketch.hpp"

/// Elements of any floating type as f64.
namespace isoscale::executor {

/// The nearest value of the type.
inline double rounded_to(program::DType type, double value) {
  if (type == program::DType::f64) return value;
  if (type == program::DType::f32) return static_cast<double>(static_cast<float>(value));
  const program::NarrowFormat format = *program::narrow_format(type);
  return static_cast<double>(decode(format, encode(format, value)));
}

inline void write_doubles(Session& session, const program::Slice& slice, program::DType type,
                          const std::vector<double>& values) {
  if (type == program::DType::f64) return put(session, slice, values);
  if (type == program::DType::f32) {
    return put(session, slice, std::vector<float>(values.begin(), values.end()));
  }
  const program::NarrowFormat format = *program::narrow_format(type);
  std::vector<std::byte> raw;
  for (const double value : values) {
    const std::uint16_t code = encode(format, value);
    raw.push_back(static_cast<std::byte>(code & 0xFFU));
    if (format.bits == 16) raw.push_back(static_cast<std::byte>(code >> 8U));
  }
  session.write(slice, raw);
}

inline std::vector<double> read_as_doubles(Session& session, const program::Slice& slice,
                                           program::DType type) {
  if (type == program::DType::f64) return get<double>(session, slice);
  if (type == program::DType::f32) {
    const auto values = get<float>(session, slice);
    return {values.begin(), values.end()};
  }
  const program::NarrowFormat format = *program::narrow_format(type);
  const std::size_t size = program::element_size(type);
  std::vector<std::byte> raw(slice.count * size);
  session.read(slice, raw);
  std::vector<double> values;
  for (std::size_t i = 0; i < raw.size(); i += size) {
    auto code = static_cast<unsigned>(raw[i]);
    if (size == 2) code |= static_cast<unsigned>(raw[i + 1]) << 8U;
    values.push_back(static_cast<double>(decode(format, static_cast<std::uint16_t>(code))));
  }
  return values;
}

}  // namespace isoscale::executor
