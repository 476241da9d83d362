// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "simulate/machine.hpp"

/// Draws the noise of compute: the deviation of a rank's compute in a step from its mean, relative
/// to the mean. Each draw depends only on its key.
namespace isoscale::simulate {

/// Returns the x with P(Z <= x) = p, for 0 < p < 1, within 1e-9. Uses Peter Acklam's rational
/// approximation and one step of Halley's method.
[[nodiscard]] double normal_quantile(double p);

/// Returns a standard normal draw made from 64 random bits, by a fast method: the bits choose one
/// of 65536 equally likely quantiles, which are scaled to variance 1.
[[nodiscard]] double quick_normal(std::uint64_t bits);

/// Returns 64 bits that look random, from a key; splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t key) {
  key += 0x9e3779b97f4a7c15ULL;
  key = (key ^ (key >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  key = (key ^ (key >> 27U)) * 0x94d049bb133111ebULL;
  return key ^ (key >> 31U);
}
/// Returns a number in (0, 1) that depends only on the key.
[[nodiscard]] constexpr double uniform(std::uint64_t key) {
  return (static_cast<double>(mixed(key) >> 11U) + 0.5) * 0x1p-53;
}

/// Draws deviations that depend only on seed, rank, node and step.
class DeviationDraws {
 public:
  DeviationDraws(const Noise& noise, std::uint64_t seed) : noise_(noise), seed_(seed) {}

  /// Returns the rank's constant deviation. Ranks take the measured ones in turn, so that each is
  /// used equally often; the seed decides in which order ranks beyond the measured ones take them.
  [[nodiscard]] double standing(int rank) const;
  /// Returns the deviation in one step that all ranks of a node share.
  [[nodiscard]] double of_node(int node, int step) const;
  /// Returns the rank's own deviation in one step.
  [[nodiscard]] double of_rank(int rank, int step) const;
  /// Returns the sum of standing(), of_node() and of_rank(), but at least -1.
  [[nodiscard]] double operator()(int rank, int node, int step) const {
    return std::max(standing(rank) + of_node(node, step) + of_rank(rank, step), -1.0);
  }

 private:
  const Noise& noise_;
  std::uint64_t seed_;
};

/// Returns deviations for Noise::draws: in each step a share of the ranks, above 0, takes longer by
/// `size`, and the others deviate normally with standard deviation `rank`.
[[nodiscard]] std::vector<double> straggling_draws(double rank, double share, double size);

/// Returns the quantile of the ascending `draws`, interpolated linearly between them and constant
/// beyond; 0 < p < 1.
[[nodiscard]] double quantile(const std::vector<double>& draws, double p);

}  // namespace isoscale::simulate
