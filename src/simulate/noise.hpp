// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "simulate/layout.hpp"
#include "simulate/machine.hpp"

/// Draws random noise of compute: the deviation of a rank's compute time in a step from its mean,
/// relative to the mean. Each draw is computed from a key, so it does not depend on earlier draws.
namespace isoscale::simulate {

/// Returns the x with P(Z <= x) = p for a standard normal Z and 0 < p < 1, within 1e-9, by Peter
/// Acklam's rational approximation and one step of Halley's method.
[[nodiscard]] double normal_quantile(double p);

/// Returns a standard normal draw made from 64 random bits, by a fast method: the bits choose one
/// of 65536 equally likely quantiles, which are scaled to variance 1.
[[nodiscard]] double quick_normal(std::uint64_t bits);

/// Returns 64 pseudo-random bits that depend only on the key: splitmix64 (Steele, Lea, Flood,
/// OOPSLA 2014).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t key) {
  key += 0x9e3779b97f4a7c15ULL;
  key = (key ^ (key >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  key = (key ^ (key >> 27U)) * 0x94d049bb133111ebULL;
  return key ^ (key >> 31U);
}
/// Returns a pseudo-random number in (0, 1) that depends only on the key.
[[nodiscard]] constexpr double uniform(std::uint64_t key) {
  return (static_cast<double>(mixed(key) >> 11U) + 0.5) * 0x1p-53;
}

/// Returns the constant deviation of each of `ranks` ranks: a factor of Noise::standing, minus 1; 0
/// if there are none. The first ranks take the factors in their order. Every further round of as
/// many ranks takes each factor once, in an order that depends on the seed.
[[nodiscard]] std::vector<double> standing_deviations(const Noise& noise, int ranks,
                                                      std::uint64_t seed = 1);

/// Returns the deviation of each rank of the layout in each step; that of rank r in step s is at
/// index s * ranks + r. It is the sum of three parts, but at least -1: the rank's constant
/// deviation, one that all ranks of its node share in the step, and the rank's own one in the step.
/// Each depends only on seed, rank, node and step.
[[nodiscard]] std::vector<double> deviations(const Noise& noise, const Layout& layout, int steps,
                                             std::uint64_t seed = 1);

/// Returns 4096 deviations for Noise::draws, ascending, with stragglers: in each step the share
/// `share` of the ranks takes longer by `size`, relative to the mean time, and the others deviate
/// normally with standard deviation `rank`. A share below 1/4096 may be lost by rounding.
[[nodiscard]] std::vector<double> straggling_draws(double rank, double share, double size);

/// Returns the p-quantile (0 < p < 1) of the ascending `draws`, interpolated linearly between them.
/// Below the first and above the last it is constant.
[[nodiscard]] double quantile(const std::vector<double>& draws, double p);

}  // namespace isoscale::simulate
