// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>

#include "program/dtypes_and_buffers.hpp"

/// Converts between f64 or f32 and the floating types of 16 and 8 bits, by plain constexpr
/// functions that executors, verification and tests share. All rounding is to nearest even.
namespace isoscale::program {

/// A binary floating type of at most 16 bits: sign, exponent, mantissa. The codes (bit patterns) in
/// its members have no sign bit.
struct NarrowFormat {
  int bits = 0, mantissa_bits = 0;
  std::uint16_t largest = 0;   ///< largest finite code
  std::uint16_t overflow = 0;  ///< the code of larger values: infinity, or `largest`
  std::uint16_t nan = 0;       ///< the code that is written for NaN
  bool has_infinity = true;    ///< true if the highest exponent means infinity or NaN

  /// The exponent bias: the exponent field of values from 1 to below 2, as in IEEE 754.
  [[nodiscard]] constexpr int bias() const { return (1 << (bits - mantissa_bits - 2)) - 1; }
  [[nodiscard]] constexpr std::uint16_t sign() const {
    return static_cast<std::uint16_t>(1U << static_cast<unsigned>(bits - 1));
  }
};

inline constexpr NarrowFormat f16_format{
    .bits = 16, .mantissa_bits = 10, .largest = 0x7BFF, .overflow = 0x7C00, .nan = 0x7E00};
inline constexpr NarrowFormat bf16_format{
    .bits = 16, .mantissa_bits = 7, .largest = 0x7F7F, .overflow = 0x7F80, .nan = 0x7FC0};
/// OCP 8-bit floating point, revision 1.0: e4m3 has no infinity and one NaN (0x7F); its largest
/// value is 448.
inline constexpr NarrowFormat e4m3_format{.bits = 8,
                                          .mantissa_bits = 3,
                                          .largest = 0x7E,
                                          .overflow = 0x7E,
                                          .nan = 0x7F,
                                          .has_infinity = false};
/// e5m2 has infinities, but values that are too large become the largest finite value, 57344.
inline constexpr NarrowFormat e5m2_format{
    .bits = 8, .mantissa_bits = 2, .largest = 0x7B, .overflow = 0x7B, .nan = 0x7E};

/// Returns the format of a narrow floating type; absent for other types.
[[nodiscard]] constexpr std::optional<NarrowFormat> narrow_format(DType type) {
  constexpr auto index = [](DType narrow) {
    return static_cast<std::size_t>(narrow) - static_cast<std::size_t>(DType::f16);
  };
  static_assert(index(DType::bf16) == 1 && index(DType::e4m3) == 2 && index(DType::e5m2) == 3);
  constexpr std::array formats{f16_format, bf16_format, e4m3_format, e5m2_format};  // as in DType
  if (type < DType::f16 || type > DType::e5m2) return std::nullopt;
  return formats[index(type)];
}

/// Returns value / 2^places, rounded to nearest even, or `value` if places <= 0. `value` must be
/// below 2^53.
[[nodiscard]] constexpr std::uint64_t round_shift(std::uint64_t value, int places) {
  constexpr int all_gone = 54;
  if (places <= 0) return value;
  if (places >= all_gone) return 0;
  const auto shift = static_cast<unsigned>(places);
  const std::uint64_t kept = value >> shift, rest = value - (kept << shift);
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  return kept + (rest > half || (rest == half && kept % 2 == 1) ? 1U : 0U);
}

/// Returns the code of `value` in a format, sign included, rounded to nearest even. Infinities and
/// values that are too large get the code NarrowFormat::overflow. An f32 may be passed as well,
/// since it widens to f64 without rounding.
[[nodiscard]] constexpr std::uint16_t encode(const NarrowFormat& format, double value) {
  constexpr int double_mantissa = 52, double_bias = 1023, double_special = 2047;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint16_t sign = (bits >> 63U) != 0 ? format.sign() : std::uint16_t{0};
  const int field = static_cast<int>((bits >> 52U) & 0x7FFU);
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << 52U) - 1);
  const auto with_sign = [sign](std::uint64_t code) {
    return static_cast<std::uint16_t>(sign | code);
  };
  if (field == double_special) return with_sign(mantissa != 0 ? format.nan : format.overflow);
  if (field == 0) return sign;          // below 2^-1022: 0 in all of these types
  const int least = 1 - format.bias();  // exponent of the smallest normal value and the subnormals
  const int exponent = field - double_bias;
  const int shared = exponent > least ? exponent : least;
  const std::uint64_t kept =
      round_shift(mantissa | (std::uint64_t{1} << 52U),
                  double_mantissa - format.mantissa_bits + (shared - exponent));
  // The leading 1 of a normal value adds 1 to the exponent field, and a carry from rounding does
  // too.
  const auto above = static_cast<std::uint64_t>(shared - least);
  if (above > std::uint64_t{format.largest} >> static_cast<unsigned>(format.mantissa_bits)) {
    return with_sign(format.overflow);
  }
  const std::uint64_t code = (above << static_cast<unsigned>(format.mantissa_bits)) + kept;
  return with_sign(code > format.largest ? format.overflow : code);
}

/// Returns the value of a code, exactly: f32 holds every value of the 16-bit and 8-bit types.
[[nodiscard]] constexpr float decode(const NarrowFormat& format, std::uint16_t code) {
  const auto mantissa_bits = static_cast<unsigned>(format.mantissa_bits);
  const unsigned magnitude = code & (format.sign() - 1U);
  const unsigned mantissa = magnitude & ((1U << mantissa_bits) - 1U);
  const unsigned field = magnitude >> mantissa_bits;
  const bool negative = (code & format.sign()) != 0;
  const unsigned special =
      (1U << static_cast<unsigned>(format.bits - 1 - format.mantissa_bits)) - 1;
  if (format.has_infinity ? field == special && mantissa != 0 : magnitude == format.nan) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  if (format.has_infinity && field == special) {
    return negative ? -std::numeric_limits<float>::infinity()
                    : std::numeric_limits<float>::infinity();
  }
  const unsigned whole = field == 0 ? mantissa : mantissa | (1U << mantissa_bits);
  const int exponent = (field == 0 ? 1 : static_cast<int>(field)) - format.bias();
  const auto power = std::bit_cast<double>(
      static_cast<std::uint64_t>(exponent - format.mantissa_bits + 1023) << 52U);
  const auto value = static_cast<float>(whole * power);
  return negative ? -value : value;
}

}  // namespace isoscale::program
