// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <vector>

#include "program/low_precision.hpp"
#include "tests/executor/sketch.hpp"

/// Elements of any type as f64.
namespace isoscale::executor {

/// The low bits of the element of a type that is nearest to `value`.
inline std::uint64_t bits_of(program::DType type, double value) {
  if (const auto format = program::narrow_format(type)) return encode(*format, value);
  if (type == program::DType::f64) return std::bit_cast<std::uint64_t>(value);
  if (type == program::DType::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}

/// The value of an element of a floating type.
inline double value_of(program::DType type, std::uint64_t bits) {
  if (type == program::DType::f64) return std::bit_cast<double>(bits);
  if (type == program::DType::f32) {
    return double{std::bit_cast<float>(static_cast<std::uint32_t>(bits))};
  }
  return static_cast<double>(
      decode(*program::narrow_format(type), static_cast<std::uint16_t>(bits)));
}

/// The nearest value of the floating type.
inline double rounded_to(program::DType type, double value) {
  return value_of(type, bits_of(type, value));
}

/// The values as a little-endian machine stores them in a type.
inline std::vector<std::byte> stored(program::DType type, const std::vector<double>& values) {
  const std::size_t size = program::element_size(type);
  std::vector<std::byte> raw(values.size() * size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t bits = bits_of(type, values[i]);
    std::memcpy(raw.data() + i * size, &bits, size);
  }
  return raw;
}

inline std::vector<double> read_as_doubles(Session& session, const program::Slice& slice,
                                           program::DType type) {
  const std::size_t size = program::element_size(type);
  std::vector<std::byte> raw(slice.count * size);
  session.read(slice, raw);
  std::vector<double> values(slice.count);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, raw.data() + i * size, size);
    values[i] = value_of(type, bits);
  }
  return values;
}

/// `values`, each rounded to the floating type.
inline std::vector<double> all_rounded(program::DType type, std::vector<double> values) {
  for (double& value : values) value = rounded_to(type, value);
  return values;
}

}  // namespace isoscale::executor
