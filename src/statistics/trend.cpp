// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "statistics/trend.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <vector>

#include "statistics/estimate.hpp"

namespace isoscale::statistics {
namespace {

/// Returns ranks from 1; equal samples share the mean of their ranks.
std::vector<double> mid_ranks(std::span<const double> samples) {
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return samples[i]; });
  std::vector<double> ranks(samples.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && samples[order[end]] == samples[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      ranks[order[i]] = static_cast<double>(begin + end + 1) / 2;
    }
    begin = end;
  }
  return ranks;
}

constexpr std::size_t fewest_blocks = 8, most_blocks = 256;

/// Returns the Theil-Sen slope: the median of all pairs' slopes, per sample.
double slope_of(std::span<const double> samples) {
  std::vector<double> slopes;
  slopes.reserve(samples.size() * (samples.size() - 1) / 2);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (std::size_t j = i + 1; j < samples.size(); ++j) {
      slopes.push_back((samples[j] - samples[i]) / static_cast<double>(j - i));
    }
  }
  return *median(slopes);
}

/// Returns the two-sided probability of Kendall's S = sum of sign(x_j - x_i) over i < j, with the
/// continuity correction.
double mann_kendall(std::span<const double> samples) {
  double s = 0;
  std::map<double, double> ties;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    ++ties[samples[i]];
    for (std::size_t j = i + 1; j < samples.size(); ++j) {
      s += static_cast<double>(samples[j] > samples[i]) -
           static_cast<double>(samples[j] < samples[i]);
    }
  }
  const auto term = [](double n) { return n * (n - 1) * (2 * n + 5); };
  double variance = term(static_cast<double>(samples.size()));
  for (const auto& [value, count] : ties) variance -= term(count);
  if (!(variance > 0)) return 1;
  const double z = std::max(0.0, std::abs(s) - 1) / std::sqrt(variance / 18);
  return std::erfc(z / std::numbers::sqrt2);
}

}  // namespace

std::optional<ChangePoint> change_point(std::span<const double> samples) {
  if (samples.size() < 2 || !all_finite(samples)) return std::nullopt;
  const auto n = static_cast<double>(samples.size());
  const std::vector<double> ranks = mid_ranks(samples);
  ChangePoint found{.first = 1};
  double largest = -1;
  double sum = 0;
  for (std::size_t t = 1; t < samples.size(); ++t) {
    sum += ranks[t - 1];
    const double distance = std::abs(2 * sum - static_cast<double>(t) * (n + 1));
    if (distance > largest) {
      largest = distance;
      found.first = t;
    }
  }
  found.probability = std::min(1.0, 2 * std::exp(-6 * largest * largest / (n * n * n + n * n)));
  return found;
}

std::size_t last_change(std::span<const double> samples, double smallest) {
  constexpr double by_chance = 0.01;
  std::size_t last = 0;
  while (const auto change = change_point(samples.subspan(last))) {
    if (change->probability >= by_chance) break;
    const auto rest = samples.subspan(last);
    const auto before = median(rest.first(change->first));
    const auto after = median(rest.subspan(change->first));
    if (!before || !after || !(std::abs(*before - *after) > smallest * std::abs(*after))) break;
    last += change->first;
  }
  return last;
}

std::optional<Trend> trend(std::span<const double> samples) {
  const auto middle = median(samples);
  if (samples.size() < fewest_blocks || !middle || !(*middle > 0)) return std::nullopt;
  const std::size_t least = (samples.size() + most_blocks - 1) / most_blocks;
  const double first_slope = slope_of(block_means(samples, least)) / static_cast<double>(least);
  std::vector<double> residuals{samples.begin(), samples.end()};
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    residuals[i] -= first_slope * static_cast<double>(i);
  }
  const std::size_t length = std::max(least, block_length(residuals));
  const std::vector<double> means = block_means(samples, length);
  if (means.size() < fewest_blocks) return std::nullopt;
  const double slope = slope_of(means) / static_cast<double>(length);
  return Trend{.change = slope * static_cast<double>(samples.size() - 1) / *middle,
               .probability = mann_kendall(means)};
}

}  // namespace isoscale::statistics
