// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

/// The standard normal distribution, and draws that depend on nothing but their key.
namespace isoscale::simulate {

/// P(Z <= x).
[[nodiscard]] double normal_cdf(double x);
/// The x with P(Z <= x) = p, for 0 < p < 1; within 1e-9. Peter Acklam's rational approximation and
/// one step of Halley's method.
[[nodiscard]] double normal_quantile(double p);

/// A standard normal draw of 64 random bits, quickly: the quantile of one of 65536 equal parts of
/// the distribution, scaled to variance 1.
[[nodiscard]] double quick_normal(std::uint64_t bits);

/// Mean and variance of the largest of `count` independent standard normal draws; count may be a
/// fraction, of at least 1: the distribution's power. By numeric integration, within 1e-6.
struct Largest {
  double mean = 0, variance = 1;
};
[[nodiscard]] Largest largest_normal(double count);

/// 64 bits that look random, of a key; splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t key) {
  key += 0x9e3779b97f4a7c15ULL;
  key = (key ^ (key >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  key = (key ^ (key >> 27U)) * 0x94d049bb133111ebULL;
  return key ^ (key >> 31U);
}
/// In (0, 1).
[[nodiscard]] constexpr double uniform(std::uint64_t key) {
  return (static_cast<double>(mixed(key) >> 11U) + 0.5) * 0x1p-53;
}

}  // namespace isoscale::simulate
