// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "simulate/noise.hpp"

#include <array>
#include <cstddef>
#include <numbers>

namespace isoscale::simulate {
namespace {

double density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }

template <std::size_t n>
double polynomial(const std::array<double, n>& coefficients, double x) {
  double value = 0;
  for (const double coefficient : coefficients) value = value * x + coefficient;
  return value;
}

/// Returns the x with P(Z <= x) = p for p <= 1/2 by Acklam's approximation, with a relative error
/// below 1.15e-9.
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

/// Part of the key of a draw, so that draws for different purposes are unrelated.
enum class Of : std::uint64_t { order = 1, node = 2, rank = 3 };

std::uint64_t key(std::uint64_t seed, Of of, int a, int b) {
  const auto word = [](int value) { return static_cast<std::uint64_t>(value) + 1; };
  return mixed(mixed(mixed(seed ^ (static_cast<std::uint64_t>(of) << 56U)) ^ word(a)) ^ word(b));
}

constexpr double never = -1e4;  ///< logarithm that replaces that of a probability of 0
constexpr double reach = 7;     ///< standard deviations at which normal distributions are cut off

/// Returns P(draw <= x) for the distribution that quantile() draws from.
double chance_below(const std::vector<double>& draws, double x) {
  const auto count = static_cast<double>(draws.size());
  if (x < draws.front()) return 0;
  if (x >= draws.back()) return 1;
  const auto after = std::upper_bound(draws.begin(), draws.end(), x);
  const double high = *after, low = *(after - 1);
  const auto before = static_cast<double>(after - draws.begin()) - 1;
  return (before + 0.5 + (x - low) / (high - low)) / count;
}

/// Returns the probability that a rank's deviation in a step, without its constant deviation, plus
/// a normal deviation of standard deviation `further` is at most `x`.
double chance_own_below(const Noise& noise, double further, double x) {
  if (noise.draws.empty()) {
    const double spread = std::hypot(noise.rank, further);
    if (spread == 0) return x >= 0 ? 1 : 0;
    return normal_cdf(x / spread);
  }
  if (further == 0) return chance_below(noise.draws, x);
  double chance = 0;
  for (const double draw : noise.draws) chance += normal_cdf((x - draw) / further);
  return chance / static_cast<double>(noise.draws.size());
}

}  // namespace

double normal_cdf(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

double normal_quantile(double p) {
  if (p > 0.5) return -normal_quantile(1 - p);
  const double x = lower_quantile(p);
  const double error = (normal_cdf(x) - p) / density(x);
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

Largest largest_normal(double count) {
  // Integrates E[X] and E[X^2] of the distribution cdf^count by parts, which needs no density.
  constexpr double low = -9, high = 12;
  constexpr int steps = 4200;
  constexpr double width = (high - low) / steps;
  double mean = high, square = high * high;
  for (int i = 0; i < steps; ++i) {
    const double x = low + (i + 0.5) * width;
    const double below = std::pow(normal_cdf(x), count);
    mean -= below * width;
    square -= 2 * x * below * width;
  }
  return {.mean = mean, .variance = square - mean * mean};
}

double quantile(const std::vector<double>& draws, double p) {
  const double place = p * static_cast<double>(draws.size()) - 0.5;
  if (place <= 0) return draws.front();
  const auto before = static_cast<std::size_t>(place);
  if (before + 1 >= draws.size()) return draws.back();
  const double share = place - static_cast<double>(before);
  return draws[before] + share * (draws[before + 1] - draws[before]);
}

double DeviationDraws::standing(int rank) const {
  const std::vector<double>& standing = noise_.standing;
  if (standing.empty()) return 0;
  const int size = static_cast<int>(standing.size());
  const int round = rank / size, place = rank % size;
  if (round == 0) return standing[static_cast<std::size_t>(place)] - 1;
  // Ranks beyond the measured ones come in rounds, each of which uses all factors in an order of
  // its own: a rank takes the factor at the position of its key among the keys of its round.
  const std::uint64_t mine = key(seed_, Of::order, round, place);
  int smaller = 0;
  for (int other = 0; other < size; ++other) {
    if (key(seed_, Of::order, round, other) < mine) ++smaller;
  }
  return standing[static_cast<std::size_t>(smaller)] - 1;
}

double DeviationDraws::operator()(int rank, int node, int step) const {
  double deviation = standing(rank);
  if (noise_.node > 0) {
    deviation += noise_.node * normal_quantile(uniform(key(seed_, Of::node, node, step)));
  }
  const double p = uniform(key(seed_, Of::rank, rank, step));
  if (!noise_.draws.empty()) {
    deviation += quantile(noise_.draws, p);
  } else if (noise_.rank > 0) {
    deviation += noise_.rank * normal_quantile(p);
  }
  return std::max(deviation, -1.0);
}

OwnDeviation::OwnDeviation(const Noise& noise, double further) {
  std::vector<double> standing;
  for (const double factor : noise.standing) standing.push_back(factor - 1);
  if (standing.empty()) standing.push_back(0);
  const auto [least, most] = std::minmax_element(standing.begin(), standing.end());
  double own_low = -reach * noise.rank, own_high = reach * noise.rank;
  if (!noise.draws.empty()) {
    own_low = noise.draws.front();
    own_high = noise.draws.back();
  }
  constexpr int parts = 2000;
  low_ = *least + own_low - reach * further;
  const double width = *most + own_high + reach * further - low_;
  step_ = width > 0 ? width / parts : 1;
  for (int i = 0; i <= (width > 0 ? parts : 0); ++i) {
    const double x = low_ + step_ * i;
    double sum = 0;
    for (const double deviation : standing) {
      // The tolerance makes a deviation count as below the bound if only rounding places it above
      // the grid's point.
      const double chance = chance_own_below(noise, further, x - deviation + step_ * 1e-6);
      sum += chance > 0 ? std::max(std::log(chance), never) : never;
    }
    log_.push_back(sum / static_cast<double>(standing.size()));
  }
}

double OwnDeviation::log_below(double x) const {
  const double place = (x - low_) / step_;
  if (place < 0) return never;
  const auto before = static_cast<std::size_t>(place);
  if (before + 1 >= log_.size()) return 0;
  const double share = place - static_cast<double>(before);
  return log_[before] + share * (log_[before + 1] - log_[before]);
}

}  // namespace isoscale::simulate
