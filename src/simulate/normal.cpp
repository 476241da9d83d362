// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "simulate/normal.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

namespace isoscale::simulate {
namespace {

double density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }

template <std::size_t n>
double polynomial(const std::array<double, n>& coefficients, double x) {
  double value = 0;
  for (const double coefficient : coefficients) value = value * x + coefficient;
  return value;
}

/// Acklam's approximation: relative error below 1.15e-9 of the tail's side, p <= 1/2.
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
  // E[X] and E[X^2] of the distribution cdf^count, by parts: no density needed.
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

}  // namespace isoscale::simulate
