// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "program/dtypes_and_buffers.hpp"

/// Computes the values that Fill writes and the terms of the checksums of Checksum ops. Values
/// depend on key and global index alone, so that every mesh and every executor has the same data.
/// The functions are plain constexpr ones that a device kernel may call too.
namespace isoscale::program {

/// Scatters the bits of a counter over the whole word (the output function of SplitMix64, Steele,
/// Lea and Flood, OOPSLA 2014).
[[nodiscard]] constexpr std::uint64_t scatter_bits(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ULL;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebULL;
  return word ^ (word >> 31);
}

/// Returns the counter at which the random numbers of a key start; it is computed once per Fill.
/// Keys 0, 1, 2, ... give unrelated random numbers.
[[nodiscard]] constexpr std::uint64_t fill_origin(std::uint64_t key) {
  return scatter_bits(key + 0x9e3779b97f4a7c15ULL);
}

/// The distribution that random values are drawn from; op.hpp explains its members at Fill.
struct FillGrid {
  std::uint64_t origin = 0;  ///< fill_origin of the key
  std::int32_t range = 127;
  std::uint32_t one_in = 1;
};

/// Returns the integer of a random fill for one element. On average one in `one_in` elements is
/// drawn; the others are 0. A drawn integer is in -range ... range, and each of these has the same
/// probability to within 2^-24 if the range is 127 or less. One half of a random word decides if
/// the element is drawn; the other half, which is independent of the first, decides its value.
[[nodiscard]] constexpr int fill_integer(const FillGrid& grid, std::uint64_t global_index) {
  const std::uint64_t word = scatter_bits(grid.origin + global_index * 0x9e3779b97f4a7c15ULL);
  const std::uint64_t low = word & 0xffffffffULL, high = word >> 32;
  if ((low * grid.one_in) >> 32 != 0) return 0;
  const auto values = 2 * static_cast<std::uint64_t>(grid.range) + 1;
  return static_cast<int>((high * values) >> 32) - grid.range;
}

/// Returns integer * scale in T, the type in which an executor computes. Integer types wrap modulo
/// 2^bits; their scale must be at least 1 and at most 2^56.
template <class T>
[[nodiscard]] constexpr T fill_value(int integer, double scale) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(integer * static_cast<std::int64_t>(scale));
  } else {
    return static_cast<T>(integer) * static_cast<T>(scale);
  }
}

/// Draws a number that resembles the data of a training run, and multiplies it by `scale`. Its sign
/// and significand are random bits, and its exponent is distributed as in a standard normal
/// distribution, except that absolute values below 1/32 are replaced by values in 1/32 ... 1/16,
/// and those above 4 by values in 2 ... 4. `scale` must be a power of two, so that the product is
/// exact. T is the type in which an executor computes: float or double.
template <class T>
[[nodiscard]] constexpr T fill_normal(const FillGrid& grid, std::uint64_t global_index,
                                      double scale) {
  // Each entry is 2048 times the probability that |x| of a standard normal is at least 2, 1, 1/2,
  // ... 1/16.
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

/// Converts a constant (a fill's value or a factor) to T, the type in which an executor computes.
/// For integer types the constant must be a whole number within +-2^62, and it wraps modulo 2^bits.
template <class T>
[[nodiscard]] constexpr T constant_as(double value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(value));
  } else {
    return static_cast<T>(value);
  }
}

/// Returns 2^exponent, exactly; exponent in -1022 ... 1023.
[[nodiscard]] constexpr double power_of_two(int exponent) {
  double power = 1;
  for (int i = 0; i < exponent; ++i) power *= 2;
  for (int i = 0; i > exponent; --i) power /= 2;
  return power;
}

/// Returns the term that an element adds to a checksum. It depends on the element's bits and on its
/// index among the op's elements in row-major order. The checksum is the sum of all terms modulo
/// 2^64, which does not depend on the order in which threads add. One changed element always
/// changes the sum; several changed elements leave it the same with a chance of 2^-64.
[[nodiscard]] constexpr std::uint64_t checksum_term(std::uint64_t bits, std::uint64_t index) {
  return scatter_bits(bits ^ scatter_bits(index + 0x9e3779b97f4a7c15ULL));
}

/// Returns the bits that are all set in infinities and NaNs of a type: the exponent bits, or in
/// e4m3 all bits except the sign. Returns 0 if every bit pattern of the type is a number.
[[nodiscard]] constexpr std::uint64_t exponent_mask(DType type) {
  // These are f64, f32, f16, bf16, e4m3 and e5m2, ordered as in DType; all other types are
  // integers.
  static_assert(DType::e5m2 == DType{5} && DType::i64 == DType{6});
  constexpr std::uint64_t masks[] = {
      0x7ff0000000000000ULL, 0x7f800000ULL, 0x7c00ULL, 0x7f80ULL, 0x7fULL, 0x7cULL};
  return type <= DType::e5m2 ? masks[static_cast<std::uint8_t>(type)] : 0;
}

[[nodiscard]] constexpr bool is_finite(std::uint64_t bits, std::uint64_t mask) {
  return mask == 0 || (bits & mask) != mask;
}

}  // namespace isoscale::program
