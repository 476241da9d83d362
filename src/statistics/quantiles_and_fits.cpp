// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "statistics/quantiles_and_fits.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "statistics/estimate.hpp"

namespace isoscale::statistics {
namespace {

struct Weighted {
  double value = 0, weight = 0;
};

double weighted_median(std::vector<Weighted> values) {
  std::ranges::sort(values, {}, &Weighted::value);
  const double all =
      std::accumulate(values.begin(), values.end(), 0.0,
                      [](double sum, const Weighted& at) { return sum + at.weight; });
  double below = 0;
  for (const Weighted& at : values) {
    below += at.weight;
    if (below >= all / 2) return at.value;
  }
  return values.back().value;
}

/// Returns the largest k for which Wilcoxon's signed-rank statistic of n samples is at most k - 1
/// with a probability of at most 2.5%; 0 if there is none. Above 50 samples, the probability is
/// computed by the normal approximation.
std::size_t signed_rank_bound(std::size_t n) {
  constexpr std::size_t exact_up_to = 50;
  const std::size_t most = n * (n + 1) / 2;
  if (n > exact_up_to) {
    const auto count = static_cast<double>(n);
    const double deviation = std::sqrt(count * (count + 1) * (2 * count + 1) / 24);
    return static_cast<std::size_t>(
        std::max(0.0, std::floor(count * (count + 1) / 4 - 1.96 * deviation)));
  }
  // ways[v] is the number of subsets of 1 ... n with the sum v, all of which are equally probable.
  std::vector<double> ways(most + 1, 0.0);
  ways[0] = 1;
  for (std::size_t rank = 1; rank <= n; ++rank) {
    for (std::size_t sum = most; sum >= rank; --sum) ways[sum] += ways[sum - rank];
  }
  double tail = 0;
  std::size_t k = 0;
  for (; k <= most; ++k) {
    tail += ways[k] * std::pow(0.5, static_cast<double>(n));
    if (tail > beyond_one_end) break;
  }
  return k;
}

double binomial_term(double n, double k, double q) {
  return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) +
                  k * std::log(q) + (n - k) * std::log1p(-q));
}

}  // namespace

std::optional<Located> quantile(std::span<const double> samples, double q) {
  const auto count = static_cast<double>(samples.size());
  constexpr double rounding = 1e-9;
  if (count * (1 - q) < 1 - rounding || !all_finite(samples)) return std::nullopt;
  std::vector<double> sorted{samples.begin(), samples.end()};
  std::ranges::sort(sorted);
  Located result{.value = sorted[static_cast<std::size_t>(std::ceil(q * count - rounding)) - 1]};
  // `cumulative` is P(at most k samples lie under the quantile). The bounds are the innermost ranks
  // that leave at most 2.5% outside at each end.
  double cumulative = 0;
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    cumulative += binomial_term(count, static_cast<double>(k), q);
    if (cumulative <= beyond_one_end) result.lower = sorted[k];
    if (cumulative >= 1 - beyond_one_end) {
      result.upper = sorted[k];
      break;
    }
  }
  if (!result.lower || !result.upper) result.lower = result.upper = std::nullopt;
  return result;
}

std::optional<Located> centre(std::span<const double> samples) {
  if (samples.empty() || !all_finite(samples)) return std::nullopt;
  std::vector<double> means;
  means.reserve(samples.size() * (samples.size() + 1) / 2);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (std::size_t j = i; j < samples.size(); ++j) means.push_back((samples[i] + samples[j]) / 2);
  }
  std::ranges::sort(means);
  Located result{.value = *median(means)};
  const std::size_t k = signed_rank_bound(samples.size());
  if (k >= 1) {
    result.lower = means[k - 1];
    result.upper = means[means.size() - k];
  }
  return result;
}

std::optional<Line> robust_line(std::span<const Point2> points) {
  std::vector<Weighted> slopes;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = i + 1; j < points.size(); ++j) {
      const double distance = points[j].x - points[i].x;
      if (distance == 0) continue;
      slopes.push_back({.value = (points[j].y - points[i].y) / distance,
                        .weight = std::abs(distance) / std::max(points[i].y, points[j].y)});
    }
  }
  if (slopes.empty()) return std::nullopt;
  Line line{.slope = weighted_median(std::move(slopes)), .intercept = 0};
  std::vector<Weighted> intercepts;
  for (const Point2& at : points) {
    intercepts.push_back({.value = at.y - line.slope * at.x, .weight = 1 / at.y});
  }
  line.intercept = weighted_median(std::move(intercepts));
  return line;
}

WeightedLine weighted_line(std::span<const WeightedPoint> points) {
  WeightedLine line;
  double x_mean = 0, y_mean = 0, covariance = 0;
  for (const auto& [x, y, weight] : points) {
    line.weights += weight;
    x_mean += weight * x;
    y_mean += weight * y;
  }
  x_mean /= line.weights;
  y_mean /= line.weights;
  for (const auto& [x, y, weight] : points) {
    covariance += weight * (x - x_mean) * (y - y_mean);
    line.spread += weight * (x - x_mean) * (x - x_mean);
  }
  line.slope = line.spread > 0 ? covariance / line.spread : 0;
  line.intercept = y_mean - line.slope * x_mean;
  return line;
}

std::vector<double> isotonic(std::span<const double> values) {
  struct Pool {
    double sum = 0;
    std::size_t size = 0;
    [[nodiscard]] double mean() const { return sum / static_cast<double>(size); }
  };
  std::vector<Pool> pools;
  for (const double value : values) {
    pools.push_back({.sum = value, .size = 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().size += last.size;
    }
  }
  std::vector<double> fitted;
  for (const Pool& pool : pools) fitted.insert(fitted.end(), pool.size, pool.mean());
  return fitted;
}

std::optional<double> promised_error(std::span<const double> errors) {
  constexpr std::size_t fewest = 3;
  if (errors.size() < fewest) return std::nullopt;
  std::vector<double> sizes(errors.size());
  std::ranges::transform(errors, sizes.begin(), [](double error) { return std::abs(error); });
  std::ranges::sort(sizes);
  const double rank = std::ceil(0.95 * (static_cast<double>(sizes.size()) + 1) - 1e-9);
  return sizes[std::min(sizes.size(), static_cast<std::size_t>(rank)) - 1];
}

}  // namespace isoscale::statistics
