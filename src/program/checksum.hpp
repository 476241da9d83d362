// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "program/buffer.hpp"
#include "program/fill.hpp"

/// The checksum of Checksum ops: the sum, modulo 2^64, of a term for each element. Sums do not
/// depend on the order that threads add in; one changed element always changes the sum, several
/// leave it with a chance of 2^-64. Plain constexpr functions: a device kernel may call them too.
namespace isoscale::program {

/// Of the element with these bits at `index` of the op's elements, in row-major order.
[[nodiscard]] constexpr std::uint64_t checksum_term(std::uint64_t bits, std::uint64_t index) {
  return scatter_bits(bits ^ scatter_bits(index + 0x9e3779b97f4a7c15ULL));
}

/// What tells numbers of a type from infinities and what is not a number: those have all the bits
/// of `exponent` set, in e4m3 all of its bits but the sign. 0: every pattern is a number.
[[nodiscard]] constexpr std::uint64_t exponent_mask(DType type) {
  switch (type) {
    case DType::f64:
      return 0x7ff0000000000000ULL;
    case DType::f32:
      return 0x7f800000ULL;
    case DType::f16:
      return 0x7c00ULL;
    case DType::bf16:
      return 0x7f80ULL;
    case DType::e4m3:
      return 0x7fULL;
    case DType::e5m2:
      return 0x7cULL;
    default:
      return 0;
  }
}

[[nodiscard]] constexpr bool is_finite(std::uint64_t bits, std::uint64_t mask) {
  return mask == 0 || (bits & mask) != mask;
}

}  // namespace isoscale::program
