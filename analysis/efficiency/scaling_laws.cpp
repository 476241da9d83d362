// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/scaling_laws.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "statistics/estimate.hpp"

namespace isoscale::analysis::efficiency {
namespace {

/// One sample of y = k_0 u_0 + k_1 u_1 + ... All values are divided by the quantity to which the
/// error of y is proportional, so that all samples have the same error.
template <std::size_t n>
struct LinearSample {
  std::array<double, n> u{};
  double y = 0;
};

template <std::size_t n>
using SquareMatrix = std::array<std::array<double, n>, n>;

template <std::size_t n>
struct LinearFit {
  std::array<double, n> k{};
  SquareMatrix<n> covariance{};  ///< of k
  std::size_t freedom = 0;       ///< degrees of freedom of the residuals
};

/// Returns the inverse of a symmetric positive definite matrix by Gauss-Jordan elimination; absent
/// if a column depends linearly on the others.
template <std::size_t n>
[[nodiscard]] std::optional<SquareMatrix<n>> inverse(SquareMatrix<n> matrix) {
  constexpr double independent = 1e-12;  // a pivot must exceed this share of its original value
  const auto whole = matrix;
  SquareMatrix<n> result{};
  for (std::size_t i = 0; i < n; ++i) result[i][i] = 1;
  for (std::size_t i = 0; i < n; ++i) {
    if (!(matrix[i][i] > independent * whole[i][i])) return std::nullopt;
    const double pivot = matrix[i][i];
    for (std::size_t j = 0; j < n; ++j) {
      matrix[i][j] /= pivot;
      result[i][j] /= pivot;
    }
    for (std::size_t row = 0; row < n; ++row) {
      const double factor = matrix[row][i];
      for (std::size_t j = 0; row != i && j < n; ++j) {
        matrix[row][j] -= factor * matrix[i][j];
        result[row][j] -= factor * result[i][j];
      }
    }
  }
  return result;
}

/// Returns an ordinary least-squares fit with the variance of its residuals. Absent unless there
/// are more samples than coefficients and the samples determine all coefficients.
template <std::size_t n>
[[nodiscard]] std::optional<LinearFit<n>> least_squares(std::span<const LinearSample<n>> samples) {
  if (samples.size() <= n) return std::nullopt;
  SquareMatrix<n> normal{};
  std::array<double, n> right{};
  for (const auto& [u, y] : samples) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) normal[i][j] += u[i] * u[j];
      right[i] += u[i] * y;
    }
  }
  const auto inverted = inverse<n>(normal);
  if (!inverted) return std::nullopt;
  LinearFit<n> result{.freedom = samples.size() - n};
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) result.k[i] += (*inverted)[i][j] * right[j];
  }
  double squares = 0;
  for (const auto& [u, y] : samples) {
    const double error = y - std::inner_product(u.begin(), u.end(), result.k.begin(), 0.0);
    squares += error * error;
  }
  result.covariance = *inverted;
  for (auto& row : result.covariance) {
    for (double& value : row) value *= squares / static_cast<double>(result.freedom);
  }
  return result;
}

constexpr std::size_t least_for_line = 3;  ///< fewest points with more ranks than the baseline
constexpr std::size_t least_for_usl = 5;   ///< fewest points with more ranks than the baseline

/// Returns k_i / k_0 with its interval; errors are propagated to first order.
template <std::size_t n>
statistics::Located over_first(const LinearFit<n>& fit, std::size_t i) {
  const double ratio = fit.k[i] / fit.k[0];
  const auto& c = fit.covariance;
  const double variance =
      std::max(0.0, c[i][i] - 2 * ratio * c[0][i] + ratio * ratio * c[0][0]) / fit.k[0] / fit.k[0];
  const double half = statistics::student_t(fit.freedom) * std::sqrt(variance);
  return {.value = ratio, .lower = ratio - half, .upper = ratio + half};
}

/// Returns the samples to which a law is fitted: the baseline and the points with more ranks. Empty
/// if there are fewer than `least` points with more ranks.
template <std::size_t n, class ToSample>
std::vector<LinearSample<n>> samples_of(std::span<const ScalingPoint> points, std::size_t least,
                                        const ToSample& to_sample) {
  std::vector<LinearSample<n>> samples;
  std::size_t beyond = 0;
  for (const ScalingPoint& at : points) {
    if (!(at.p >= 1) || !(at.speedup > 0)) continue;
    beyond += at.p > 1 ? 1 : 0;
    samples.push_back(to_sample(at));
  }
  if (beyond < least) samples.clear();
  return samples;
}

std::optional<statistics::Located> serial_fraction(std::span<const LinearSample<2>> samples) {
  const auto line = least_squares<2>(samples);
  if (!line || !(line->k[0] > 0)) return std::nullopt;
  const statistics::Located fraction = over_first(*line, 1);
  // A fraction above 1 means slower than the baseline, and an interval of width 1 or more carries
  // no information.
  constexpr double rounding = 1e-9;
  const bool explains = fraction.value <= 1 + rounding && *fraction.upper - *fraction.lower < 1;
  return explains ? std::optional{fraction} : std::nullopt;
}

}  // namespace

std::optional<statistics::Located> karp_flatt(const ScalingPoint& point) {
  if (!(point.p > 1) || !(point.speedup > 0)) return std::nullopt;
  const auto fraction = [&point](double speedup) {
    return (1 / speedup - 1 / point.p) / (1 - 1 / point.p);
  };
  statistics::Located result{.value = fraction(point.speedup)};
  if (point.lower && point.upper && *point.lower > 0) {
    result.lower = fraction(*point.upper);
    result.upper = fraction(*point.lower);
  }
  return result;
}

std::optional<statistics::Located> amdahl(std::span<const ScalingPoint> points) {
  return serial_fraction(samples_of<2>(points, least_for_line, [](const ScalingPoint& at) {
    const double weight = at.speedup / at.p;
    return LinearSample<2>{.u = {weight, (at.p - 1) * weight}, .y = 1};
  }));
}

std::optional<statistics::Located> gustafson(std::span<const ScalingPoint> points) {
  return serial_fraction(samples_of<2>(points, least_for_line, [](const ScalingPoint& at) {
    return LinearSample<2>{.u = {1, 1 / at.p - 1}, .y = at.speedup / at.p};
  }));
}

std::optional<Usl> usl(std::span<const ScalingPoint> points) {
  const auto law = least_squares<
      3>(samples_of<3>(points, least_for_usl, [](const ScalingPoint& at) {
    const double weight = at.speedup / at.p;
    return LinearSample<3>{.u = {weight, (at.p - 1) * weight, at.p * (at.p - 1) * weight}, .y = 1};
  }));
  if (!law || !(law->k[0] > 0)) return std::nullopt;
  Usl result{.contention = over_first(*law, 1), .coherency = over_first(*law, 2)};
  const double a = result.contention.value;
  // There is no peak if the coherency may be 0, or if the whole interval of the contention is below
  // 0 (superlinear speed-up).
  if (*result.coherency.lower > 0 && a < 1 && *result.contention.upper >= 0) {
    result.peak = std::sqrt((1 - a) / result.coherency.value);
  }
  return result;
}

}  // namespace isoscale::analysis::efficiency
