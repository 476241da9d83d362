// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/elements.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

#include "base/error.hpp"
#include "program/low_precision.hpp"

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

/// Whether no element has all bits of `mask` set: what infinities and NaN have in common in every
/// type that has infinities.
template <class Word>
bool none_has_all(std::span<const std::byte> raw, Word mask) {
  Word worst = 0;  // without a branch, so that the loop can be vectorised
  for (std::size_t i = 0; i < raw.size() / sizeof(Word); ++i) {
    Word word = 0;
    std::memcpy(&word, raw.data() + i * sizeof(Word), sizeof(Word));
    worst = static_cast<Word>(worst | static_cast<Word>((word & mask) == mask ? 1 : 0));
  }
  return worst == 0;
}

}  // namespace

bool all_finite(std::span<const std::byte> raw, program::DType type) {
  using program::DType;
  switch (type) {
    case DType::f64:
      return none_has_all<std::uint64_t>(raw, 0x7FF0'0000'0000'0000ULL);
    case DType::f32:
      return none_has_all<std::uint32_t>(raw, 0x7F80'0000U);
    case DType::bf16:
      return none_has_all<std::uint16_t>(raw, 0x7F80U);
    case DType::f16:
      return none_has_all<std::uint16_t>(raw, 0x7C00U);
    case DType::e5m2:
      return none_has_all<std::uint8_t>(raw, 0x7CU);
    case DType::e4m3:  // no infinities, and one NaN of either sign
      return none_has_all<std::uint8_t>(raw, 0x7FU);
    default:
      throw base::Error(fmt::format("cannot read {} as floating point", program::name(type)));
  }
}

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
