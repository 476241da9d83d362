// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/elements.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/error.hpp"

namespace isoscale::runner {
namespace {

/// A binary floating-point number of 16 bits with `exponent_bits` and the rest mantissa, IEEE 754.
double from_half(std::uint16_t bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias)
                               : std::ldexp(1 + fraction, exponent - bias));
}

template <class Element, class Convert>
std::vector<double> convert(std::span<const std::byte> raw, const Convert& to_double) {
  std::vector<double> values(raw.size() / sizeof(Element));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Element element;
    std::memcpy(&element, raw.data() + i * sizeof(Element), sizeof(Element));
    values[i] = to_double(element);
  }
  return values;
}

}  // namespace

std::vector<double> to_doubles(std::span<const std::byte> raw, program::DType type) {
  using program::DType;
  switch (type) {
    case DType::f64:
      return convert<double>(raw, [](double value) { return value; });
    case DType::f32:
      return convert<float>(raw, [](float value) { return static_cast<double>(value); });
    case DType::f16:
      return convert<std::uint16_t>(raw, [](std::uint16_t bits) { return from_half(bits, 5); });
    case DType::bf16:
      return convert<std::uint16_t>(raw, [](std::uint16_t bits) { return from_half(bits, 8); });
    default:
      throw base::Error(fmt::format("cannot read {} as floating point", program::name(type)));
  }
}

}  // namespace isoscale::runner
