// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "simulate/machine.hpp"

/// Noise: the standard normal distribution, draws that depend on nothing but their key, and the
/// deviation of a rank's compute in one step from its mean, relative to it.
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
/// A number in (0, 1).
[[nodiscard]] constexpr double uniform(std::uint64_t key) {
  return (static_cast<double>(mixed(key) >> 11U) + 0.5) * 0x1p-53;
}

/// Draws of deviations that depend on nothing but seed, rank, node and step. A rank's standing
/// deviation is one of the measured ones: each of them as often as any other, in an order that the
/// seed decides beyond the ranks that were measured.
class DeviationDraws {
 public:
  DeviationDraws(const Noise& noise, std::uint64_t seed) : noise_(noise), seed_(seed) {}

  [[nodiscard]] double standing(int rank) const;
  /// Standing, of the node in this step, and of the rank in this step. At least -1.
  [[nodiscard]] double operator()(int rank, int node, int step) const;

 private:
  const Noise& noise_;
  std::uint64_t seed_;
};

/// The quantile of the measured draws, straight between them and none beyond; 0 < p < 1.
[[nodiscard]] double quantile(const std::vector<double>& draws, double p);

/// The distribution of a rank's deviation without what its node shares: standing and its own. As
/// the ranks' standing deviations are the measured ones, each as often, the logarithm of the chance
/// that all of many ranks stay below x is the mean over these.
class OwnDeviation {
 public:
  /// `further`: the standard deviation of what else a rank's compute deviates by, normal.
  OwnDeviation(const Noise& noise, double further);

  [[nodiscard]] double low() const { return low_; }
  [[nodiscard]] double high() const { return low_ + step_ * static_cast<double>(log_.size() - 1); }
  /// Mean over ranks of log P(deviation <= x).
  [[nodiscard]] double log_below(double x) const;

 private:
  double low_ = 0, step_ = 1;
  std::vector<double> log_;
};

/// log of the mean of exp(log_below(d)) over deviations d of a node, normal with standard deviation
/// `node`: the chance that all its ranks stay below something, from that at a known d.
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
