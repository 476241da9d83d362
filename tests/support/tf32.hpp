// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>

namespace isoscale::program {

/// Returns the nearest value with tf32's 10 bits of mantissa; exponents are those of f32.
[[nodiscard]] constexpr float round_to_tf32(float value) {
  constexpr std::uint32_t dropped = 0x1FFF, special = 0x7F800000;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & special) == special) return value;
  const std::uint32_t to_even = dropped / 2 + ((bits >> 13U) & 1U);
  return std::bit_cast<float>((bits + to_even) & ~dropped);
}

}  // namespace isoscale::program
