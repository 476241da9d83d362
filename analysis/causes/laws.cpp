// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/causes/laws.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace isoscale::analysis {
namespace {

constexpr std::size_t least_for_line = 3;  ///< points beyond the baseline
constexpr std::size_t least_for_usl = 5;   ///< likewise

/// Student's t for 97.5% by degrees of freedom, from 1 on; beyond, the normal distribution's.
double t_of(std::size_t freedom) {
  constexpr std::array table{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                             2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                             2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  return freedom <= table.size() ? table[freedom - 1] : 1.96 + 2.5 / static_cast<double>(freedom);
}

std::vector<ScalingPoint> beyond_baseline(std::span<const ScalingPoint> points) {
  std::vector<ScalingPoint> rest;
  for (const ScalingPoint& point : points) {
    if (point.p > 1 && point.speedup > 0) rest.push_back(point);
  }
  return rest;
}

struct Sample {
  double x = 0, y = 0;
};

/// y = f x through the origin, with the interval of f.
std::optional<Located> slope(std::span<const Sample> samples) {
  if (samples.size() < least_for_line) return std::nullopt;
  double xx = 0, xy = 0;
  for (const auto& [x, y] : samples) {
    xx += x * x;
    xy += x * y;
  }
  const double f = xy / xx;
  double squares = 0;
  for (const auto& [x, y] : samples) squares += (y - f * x) * (y - f * x);
  const std::size_t freedom = samples.size() - 1;
  const double half = t_of(freedom) * std::sqrt(squares / static_cast<double>(freedom) / xx);
  return Located{.value = f, .lower = f - half, .upper = f + half};
}

}  // namespace

std::optional<Located> karp_flatt(const ScalingPoint& point) {
  if (!(point.p > 1) || !(point.speedup > 0)) return std::nullopt;
  const auto fraction = [&point](double speedup) {
    return (1 / speedup - 1 / point.p) / (1 - 1 / point.p);
  };
  Located result{.value = fraction(point.speedup), .lower = std::nullopt, .upper = std::nullopt};
  if (point.lower && point.upper && *point.lower > 0) {
    result.lower = fraction(*point.upper);
    result.upper = fraction(*point.lower);
  }
  return result;
}

std::optional<Located> amdahl(std::span<const ScalingPoint> points) {
  std::vector<Sample> samples;
  for (const ScalingPoint& at : beyond_baseline(points)) {
    samples.push_back({.x = 1 - 1 / at.p, .y = 1 / at.speedup - 1 / at.p});
  }
  return slope(samples);
}

std::optional<Located> gustafson(std::span<const ScalingPoint> points) {
  std::vector<Sample> samples;
  // By p, so that relative errors weigh alike.
  for (const ScalingPoint& at : beyond_baseline(points)) {
    samples.push_back({.x = 1 - 1 / at.p, .y = 1 - at.speedup / at.p});
  }
  return slope(samples);
}

std::optional<Usl> usl(std::span<const ScalingPoint> points) {
  const std::vector<ScalingPoint> rest = beyond_baseline(points);
  if (rest.size() < least_for_usl) return std::nullopt;
  // p/speedup - 1 = a (p - 1) + b p (p - 1), both sides over p/speedup: normal equations.
  double uu = 0, uv = 0, vv = 0, uy = 0, vy = 0;
  const auto row = [](const ScalingPoint& at) {
    const double weight = at.speedup / at.p;
    return std::array{(at.p - 1) * weight, at.p * (at.p - 1) * weight, 1 - weight};
  };
  for (const ScalingPoint& at : rest) {
    const auto [u, v, y] = row(at);
    uu += u * u;
    uv += u * v;
    vv += v * v;
    uy += u * y;
    vy += v * y;
  }
  const double determinant = uu * vv - uv * uv;
  if (!(determinant > 1e-12 * uu * vv)) return std::nullopt;
  const double a = (uy * vv - vy * uv) / determinant;
  const double b = (vy * uu - uy * uv) / determinant;
  double squares = 0;
  for (const ScalingPoint& at : rest) {
    const auto [u, v, y] = row(at);
    squares += (y - a * u - b * v) * (y - a * u - b * v);
  }
  const std::size_t freedom = rest.size() - 2;
  const double variance = squares / static_cast<double>(freedom) / determinant;
  const double half_a = t_of(freedom) * std::sqrt(variance * vv);
  const double half_b = t_of(freedom) * std::sqrt(variance * uu);
  Usl law{.contention = {.value = a, .lower = a - half_a, .upper = a + half_a},
          .coherency = {.value = b, .lower = b - half_b, .upper = b + half_b},
          .peak = std::nullopt};
  // A coherency that may be 0 promises no peak.
  if (b - half_b > 0 && a < 1) law.peak = std::sqrt((1 - a) / b);
  return law;
}

}  // namespace isoscale::analysis
