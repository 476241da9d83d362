// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/elements.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

#include "base/error.hpp"
#include "program/narrow.hpp"

namespace isoscale::runner {
namespace {

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
  if (const auto format = program::narrow_format(type)) {
    if (program::element_size(type) == 1) {
      return convert<std::uint8_t>(raw, [&](std::uint8_t code) { return decode(*format, code); });
    }
    return convert<std::uint16_t>(raw, [&](std::uint16_t code) { return decode(*format, code); });
  }
  switch (type) {
    case DType::f64:
      return convert<double>(raw, [](double value) { return value; });
    case DType::f32:
      return convert<float>(raw, [](float value) { return static_cast<double>(value); });
    default:
      throw base::Error(fmt::format("cannot read {} as floating point", program::name(type)));
  }
}

}  // namespace isoscale::runner
