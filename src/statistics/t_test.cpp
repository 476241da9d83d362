// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "statistics/t_test.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "statistics/estimate.hpp"

namespace isoscale::statistics {
namespace {

/// Returns `value`, or 1e-300 if it is too close to 0 to be a divisor.
double away_from_zero(double value) {
  constexpr double tiny = 1e-300;
  return std::abs(value) < tiny ? tiny : value;
}

/// Returns the continued fraction of the incomplete beta function (NIST DLMF 8.17.22), evaluated
/// from the front by Lentz's method; it converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double x, double a, double b) {
  constexpr int most_terms = 10'000;
  constexpr double precision = 1e-15;
  double front = 1, back = 0, value = 1;
  for (int term = 1; term <= most_terms; ++term) {
    const double m = term / 2;  // NOLINT: the division rounds down on purpose
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

/// Returns the regularised incomplete beta function I_x(a, b).
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

std::optional<Mean> mean_of(std::span<const double> samples) {
  constexpr std::size_t least = 2;
  if (samples.size() < least || !all_finite(samples)) return std::nullopt;
  const auto n = static_cast<double>(samples.size());
  const double mean = std::reduce(samples.begin(), samples.end()) / n;
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  return Mean{.value = mean, .variance = squares / (n - 1) / n, .freedom = n - 1};
}

Mean difference(const Mean& from, const Mean& to) {
  Mean result{.value = to.value - from.value,
              .variance = from.variance + to.variance,
              .freedom = from.freedom + to.freedom};
  if (result.variance > 0) {
    result.freedom =
        result.variance * result.variance /
        (from.variance * from.variance / from.freedom + to.variance * to.variance / to.freedom);
  }
  return result;
}

Mean exponential(const Mean& mean) {
  const double value = std::exp(mean.value);
  return {.value = value, .variance = value * value * mean.variance, .freedom = mean.freedom};
}

Located located(const Mean& mean) {
  const double half = student_quantile(beyond_one_end, mean.freedom) * std::sqrt(mean.variance);
  return {.value = mean.value, .lower = mean.value - half, .upper = mean.value + half};
}

double p_below(const Mean& mean, double bound) {
  const double off = mean.value - bound;
  if (!(mean.variance > 0)) return off < 0 ? 0 : 1;
  return 1 - student_tail(off / std::sqrt(mean.variance), mean.freedom);
}

double p_above(const Mean& mean, double bound) {
  const double off = mean.value - bound;
  if (!(mean.variance > 0)) return off > 0 ? 0 : 1;
  return student_tail(off / std::sqrt(mean.variance), mean.freedom);
}

std::vector<double> holm(std::span<const double> probabilities) {
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t at) { return probabilities[at]; });
  std::vector<double> adjusted(probabilities.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto left = static_cast<double>(order.size() - i);
    largest = std::max(largest, std::min(1.0, left * probabilities[order[i]]));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

}  // namespace isoscale::statistics
