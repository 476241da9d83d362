// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

/// The reference for tf32 and for the scale of a cast, which the product computes on GPUs alone.
namespace isoscale::program {

/// Returns the nearest value with tf32's 10 bits of mantissa; exponents are those of f32.
[[nodiscard]] constexpr float round_to_tf32(float value) {
  constexpr std::uint32_t dropped = 0x1FFF, special = 0x7F800000;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & special) == special) return value;
  const std::uint32_t to_even = dropped / 2 + ((bits >> 13U) & 1U);
  return std::bit_cast<float>((bits + to_even) & ~dropped);
}

/// Returns the scale of CastScale::amax: 2^floor(log2(target / largest)), its exponent kept within
/// -126 ... 126 so that the scale and its inverse are normal f32 numbers; 1 if `largest` is 0 or
/// not finite. Executors may compute the quotient in f32 or in f64: for targets with few
/// significant bits, both quotients have the same exponent.
[[nodiscard]] inline double amax_scale(double target, double largest) {
  if (!(largest > 0) || !std::isfinite(largest)) return 1;
  constexpr int most = 126;
  const double quotient = target / largest;
  const int exponent = std::isfinite(quotient) ? std::ilogb(quotient) : most;
  return std::ldexp(1.0, exponent < -most ? -most : exponent > most ? most : exponent);
}

}  // namespace isoscale::program
