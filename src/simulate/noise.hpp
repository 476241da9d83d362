// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "simulate/machine.hpp"

/// The noise of compute: the standard normal distribution, draws that depend only on their key, and
/// the deviation of a rank's compute in a step from its mean, relative to the mean.
namespace isoscale::simulate {

/// Returns P(Z <= x).
[[nodiscard]] double normal_cdf(double x);
/// Returns the x with P(Z <= x) = p, for 0 < p < 1, within 1e-9. Uses Peter Acklam's rational
/// approximation and one step of Halley's method.
[[nodiscard]] double normal_quantile(double p);

/// Returns a standard normal draw made from 64 random bits, by a fast method: it is the quantile of
/// one of 65536 equal parts of the distribution, scaled to variance 1.
[[nodiscard]] double quick_normal(std::uint64_t bits);

/// The mean and variance of the largest of several draws.
struct Largest {
  double mean = 0, variance = 1;
};
/// Returns the mean and variance of the largest of `count` independent standard normal draws,
/// integrated numerically, within 1e-6. `count` must be at least 1 but need not be whole: it is
/// used as the exponent of the distribution function.
[[nodiscard]] Largest largest_normal(double count);

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

/// Draws deviations that depend only on seed, rank, node and step. Ranks take the measured constant
/// deviations in turn, so that each is used equally often; the seed decides in which order ranks
/// beyond the measured ones take them.
class DeviationDraws {
 public:
  DeviationDraws(const Noise& noise, std::uint64_t seed) : noise_(noise), seed_(seed) {}

  [[nodiscard]] double standing(int rank) const;
  /// Returns the sum of three deviations: the rank's constant one, its node's in this step, and the
  /// rank's own in this step; at least -1.
  [[nodiscard]] double operator()(int rank, int node, int step) const;

 private:
  const Noise& noise_;
  std::uint64_t seed_;
};

/// Returns the quantile of the ascending `draws`, interpolated linearly between them and constant
/// beyond; 0 < p < 1.
[[nodiscard]] double quantile(const std::vector<double>& draws, double p);

/// The distribution of the part of a rank's deviation that it does not share with its node: one
/// that is constant for the rank, plus one that is drawn anew in each step. Each measured constant
/// deviation is assumed to occur in the same share of the ranks, so for large n the logarithm of
/// the probability that all of n ranks stay below x is n * log_below(x).
class OwnDeviation {
 public:
  /// `further` is the standard deviation of a further, normal deviation of a rank's compute.
  OwnDeviation(const Noise& noise, double further);

  [[nodiscard]] double low() const { return low_; }
  [[nodiscard]] double high() const { return low_ + step_ * static_cast<double>(log_.size() - 1); }
  /// Returns the mean over constant deviations of log P(deviation <= x).
  [[nodiscard]] double log_below(double x) const;

 private:
  double low_ = 0, step_ = 1;
  std::vector<double> log_;
};

/// Returns the logarithm of the probability that all ranks of a node stay below a bound.
/// `log_below(d)` is this logarithm if the node's deviation is d; the probability is averaged over
/// d, which is normal with standard deviation `node`.
template <class LogBelow>
[[nodiscard]] double log_node_below(double node, const LogBelow& log_below) {
  if (node == 0) return log_below(0.0);
  constexpr int parts = 280;
  constexpr double reach = 7, width = 2 * reach / parts, never = -1e4;
  double chance = 0, weight = 0;
  for (int i = 0; i < parts; ++i) {
    const double at = -reach + (i + 0.5) * width;
    const double density = std::exp(-at * at / 2);
    weight += density;
    chance += density * std::exp(std::max(log_below(node * at), never));
  }
  return chance > 0 ? std::max(std::log(chance / weight), never) : never;
}

}  // namespace isoscale::simulate
