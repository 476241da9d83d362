// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/statistics/student_distribution.hpp"

#include <cmath>

namespace isoscale::analysis {
namespace {

/// Keeps what is divided by away from 0.
double away_from_zero(double value) {
  constexpr double tiny = 1e-300;
  return std::abs(value) < tiny ? tiny : value;
}

/// The continued fraction of the incomplete beta function (NIST DLMF 8.17.22), evaluated from the
/// front as Lentz does; it converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double x, double a, double b) {
  constexpr int most_terms = 10'000;
  constexpr double precision = 1e-15;
  double front = 1, back = 0, value = 1;
  for (int term = 1; term <= most_terms; ++term) {
    const double m = term / 2;  // NOLINT: whole pairs of terms
    const double numerator = term % 2 == 0
                                 ? m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
                                 : -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    back = 1 / away_from_zero(1 + numerator * back);
    front = away_from_zero(1 + numerator / front);
    value *= front * back;
    if (std::abs(front * back - 1) < precision) break;
  }
  return 1 / value;
}

/// Regularised incomplete beta function I_x(a, b).
double incomplete_beta(double x, double a, double b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double scale = std::exp(a * std::log(x) + b * std::log1p(-x) + std::lgamma(a + b) -
                                std::lgamma(a) - std::lgamma(b));
  if (x < (a + 1) / (a + b + 2)) return scale * beta_fraction(x, a, b) / a;
  return 1 - scale * beta_fraction(1 - x, b, a) / b;
}

}  // namespace

double student_tail(double t, double freedom) {
  const double outside = incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5);
  return t > 0 ? outside / 2 : 1 - outside / 2;
}

double student_quantile(double tail, double freedom) {
  if (tail > 0.5) return -student_quantile(1 - tail, freedom);
  double below = 0, above = 1;
  while (student_tail(above, freedom) > tail) above *= 2;
  constexpr int halvings = 100;
  for (int i = 0; i < halvings && above - below > 1e-12 * above; ++i) {
    const double middle = (below + above) / 2;
    (student_tail(middle, freedom) > tail ? below : above) = middle;
  }
  return (below + above) / 2;
}

}  // namespace isoscale::analysis
