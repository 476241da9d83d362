// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "simulate/noise.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace isoscale::simulate {
namespace {

template <std::size_t n>
double polynomial(const std::array<double, n>& coefficients, double x) {
  double value = 0;
  for (const double coefficient : coefficients) value = value * x + coefficient;
  return value;
}

/// Returns the x with P(Z <= x) = p for a standard normal Z and p <= 1/2, by Acklam's
/// approximation, with a relative error below 1.15e-9.
double lower_quantile(double p) {
  constexpr std::array a{-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                         1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr std::array b{-5.447609879822406e+01, 1.615858368580409e+02,  -1.556989798598866e+02,
                         6.680131188771972e+01,  -1.328068155288572e+01, 1.0};
  constexpr std::array c{-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                         -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr std::array d{7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                         3.754408661907416e+00, 1.0};
  constexpr double tail = 0.02425;
  if (p < tail) {
    const double q = std::sqrt(-2 * std::log(p));
    return polynomial(c, q) / polynomial(d, q);
  }
  const double q = p - 0.5;
  return q * polynomial(a, q * q) / polynomial(b, q * q);
}

/// The purpose of a random draw. It is part of the key from which the draw is computed, so draws
/// for different purposes are independent.
enum class Of : std::uint64_t { order = 1, node = 2, rank = 3 };

std::uint64_t key(std::uint64_t seed, Of of, int a, int b) {
  const auto word = [](int value) { return static_cast<std::uint64_t>(value) + 1; };
  return mixed(mixed(mixed(seed ^ (static_cast<std::uint64_t>(of) << 56U)) ^ word(a)) ^ word(b));
}

/// Returns the p-quantile (0 < p < 1) of a rank's own deviation in one step.
double own_deviation(const Noise& noise, double p) {
  if (!noise.draws.empty()) return quantile(noise.draws, p);
  return noise.rank > 0 ? noise.rank * normal_quantile(p) : 0;
}

}  // namespace

double normal_quantile(double p) {
  if (p > 0.5) return -normal_quantile(1 - p);
  const double x = lower_quantile(p);
  const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
  const double error = (std::erfc(-x / std::numbers::sqrt2) / 2 - p) / density;
  return x - error / (1 + x * error / 2);
}

double quick_normal(std::uint64_t bits) {
  static const std::vector<float> table = [] {
    constexpr std::size_t size = 65536;
    std::vector<float> values;
    double squares = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const double x = normal_quantile((static_cast<double>(i) + 0.5) / size);
      values.push_back(static_cast<float>(x));
      squares += x * x / size;
    }
    for (float& value : values) value = static_cast<float>(value / std::sqrt(squares));
    return values;
  }();
  return table[bits >> 48U];
}

std::vector<double> straggling_draws(double rank, double share, double size) {
  constexpr int count = 4096;
  std::vector<double> draws;
  for (int i = 0; i < count; ++i) {
    const double p = (i + 0.5) / count, others = 1 - share;
    draws.push_back(p < others ? rank * normal_quantile(p / others) : size);
  }
  std::ranges::sort(draws);
  return draws;
}

double quantile(const std::vector<double>& draws, double p) {
  const double place = p * static_cast<double>(draws.size()) - 0.5;
  if (place <= 0) return draws.front();
  const auto before = static_cast<std::size_t>(place);
  if (before + 1 >= draws.size()) return draws.back();
  const double share = place - static_cast<double>(before);
  return draws[before] + share * (draws[before + 1] - draws[before]);
}

std::vector<double> standing_deviations(const Noise& noise, int ranks, std::uint64_t seed) {
  std::vector<double> result(at(ranks));
  const int size = static_cast<int>(noise.standing.size());
  for (int rank = 0; size > 0 && rank < ranks; ++rank) {
    const int round = rank / size, place = rank % size;
    int measured = place;
    if (round > 0) {
      // Ranks beyond the measured ones are divided into rounds of `size` ranks. Each round uses
      // every factor once, in a random order: each rank gets a random key, and the number of
      // smaller keys in its round is the index of its factor.
      const std::uint64_t mine = key(seed, Of::order, round, place);
      measured = 0;
      for (int other = 0; other < size; ++other) {
        if (key(seed, Of::order, round, other) < mine) ++measured;
      }
    }
    result[at(rank)] = noise.standing[at(measured)] - 1;
  }
  return result;
}

std::vector<double> deviations(const Noise& noise, const Layout& layout, int steps,
                               std::uint64_t seed) {
  const std::vector<int>& nodes = layout.node_of_rank;
  const int ranks = static_cast<int>(nodes.size());
  const std::vector<double> standing = standing_deviations(noise, ranks, seed);
  std::vector<double> result;
  result.reserve(at(steps) * nodes.size());
  for (int step = 0; step < steps; ++step) {
    double of_node = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const int node = nodes[at(rank)];
      if (rank == 0 || node != nodes[at(rank - 1)]) {
        of_node = noise.node * normal_quantile(uniform(key(seed, Of::node, node, step)));
      }
      const double own = own_deviation(noise, uniform(key(seed, Of::rank, rank, step)));
      result.push_back(std::max(standing[at(rank)] + of_node + own, -1.0));
    }
  }
  return result;
}

}  // namespace isoscale::simulate
