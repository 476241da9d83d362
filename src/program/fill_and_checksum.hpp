// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "program/buffer.hpp"

/// The values that Fill writes, a function of key and global index alone, so that every mesh and
/// every executor has the same data; and the checksums of Checksum ops. Plain constexpr functions:
/// a device kernel may call them too.
namespace isoscale::program {

/// Scatters the bits of a counter over the whole word (the output function of SplitMix64, Steele,
/// Lea and Flood, OOPSLA 2014).
[[nodiscard]] constexpr std::uint64_t scatter_bits(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
  return word ^ (word >> 31);
}

/// Where the counters of a key begin; taken once per Fill. Keys 0, 1, 2, ... have unrelated
/// streams.
[[nodiscard]] constexpr std::uint64_t fill_origin(std::uint64_t key) {
  return scatter_bits(key + 0x9e3779b97f4a7c15ULL);
}

/// The grid that random values are drawn from; see Fill.
struct FillGrid {
  std::uint64_t origin = 0;  ///< fill_origin of the key
  std::int32_t range = 127;
  std::uint32_t one_in = 1;
};

/// An integer in -range ... range, each as likely as any other to within 2^-24; 0 for all but one
/// in `one_in` elements. The halves of one word decide which and whether: they are unrelated.
[[nodiscard]] constexpr int fill_integer(const FillGrid& grid, std::uint64_t global_index) {
  const std::uint64_t word = scatter_bits(grid.origin + global_index * 0x9e3779b97f4a7c15ULL);
  const std::uint64_t low = word & 0xffffffffULL, high = word >> 32;
  if ((low * grid.one_in) >> 32 != 0) return 0;
  const auto values = 2 * static_cast<std::uint64_t>(grid.range) + 1;
  return static_cast<int>((high * values) >> 32) - grid.range;
}

/// The random value that a type that computes stores: fill_integer times a power of two. Integers
/// wrap modulo 2^bits; their scale is at least 1 and at most 2^56.
template <class T>
[[nodiscard]] constexpr T fill_value(int integer, double scale) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(integer * static_cast<std::int64_t>(scale));
  } else {
    return static_cast<T>(integer) * static_cast<T>(scale);
  }
}

/// A number as trained data are made of: every bit of T's significand is drawn, the exponent as a
/// standard normal has it, the sign as well; times a power of two, exactly. Where |x| of a normal
/// is below 1/32, this has 1/32 ... 1/16. T computes: float or double.
template <class T>
[[nodiscard]] constexpr T fill_normal(const FillGrid& grid, std::uint64_t global_index,
                                      double scale) {
  // 2048 times the probability that |x| of a standard normal is at least 2, 1, 1/2, ... 1/16.
  constexpr std::uint64_t at_least[] = {93, 650, 1264, 1644, 1844, 1946};
  constexpr int drawn = 52, used = std::numeric_limits<T>::digits - 1;
  const std::uint64_t word = scatter_bits(grid.origin + global_index * 0x9e3779b97f4a7c15ULL);
  T size = static_cast<T>(scale) * 2;
  for (const std::uint64_t bound : at_least) {
    if (word >> 53 >= bound) size /= 2;
  }
  const std::uint64_t bits = (word & ((1ULL << drawn) - 1)) >> (drawn - used);
  const T significand = 1 + static_cast<T>(bits) / static_cast<T>(1ULL << used);
  return (word >> drawn & 1) != 0 ? -significand * size : significand * size;
}

/// A constant as a type that computes stores it, in a fill or as a factor; for integers a whole
/// number within +-2^62, which wraps modulo 2^bits.
template <class T>
[[nodiscard]] constexpr T constant_as(double value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(value));
  } else {
    return static_cast<T>(value);
  }
}

/// 2^exponent, exactly; exponent in -1022 ... 1023.
[[nodiscard]] constexpr double power_of_two(int exponent) {
  double power = 1;
  for (int i = 0; i < exponent; ++i) power *= 2;
  for (int i = 0; i > exponent; --i) power /= 2;
  return power;
}

/// The checksum is the sum, modulo 2^64, of a term for each element. Sums do not
/// depend on the order that threads add in; one changed element always changes the sum, several
/// leave it with a chance of 2^-64. This is the term of the element with these bits at `index` of
/// the op's elements, in row-major order.
[[nodiscard]] constexpr std::uint64_t checksum_term(std::uint64_t bits, std::uint64_t index) {
  return scatter_bits(bits ^ scatter_bits(index + 0x9e3779b97f4a7c15ULL));
}

/// The bits that infinities and NaN of a type have set: all of the exponent, in e4m3 all but the
/// sign. 0: every pattern is a number.
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
