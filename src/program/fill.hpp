// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

/// The values that Fill writes: a function of key and global index alone, so that every mesh and
/// every executor has the same data. Plain constexpr functions: a device kernel may call them too.
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

/// An integer in -127 ... 127, each as likely as any other to within 2^-24.
[[nodiscard]] constexpr int fill_integer(std::uint64_t origin, std::uint64_t global_index) {
  const std::uint64_t random = scatter_bits(origin + global_index * 0x9e3779b97f4a7c15ULL) >> 32;
  return static_cast<int>((random * 255) >> 32) - 127;
}

/// 2^exponent, exactly; exponent in -1022 ... 1023.
[[nodiscard]] constexpr double power_of_two(int exponent) {
  double power = 1;
  for (int i = 0; i < exponent; ++i) power *= 2;
  for (int i = 0; i > exponent; --i) power /= 2;
  return power;
}

}  // namespace isoscale::program
