// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/statistics/change_point.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "analysis/statistics/statistics.hpp"

namespace isoscale::analysis {
namespace {

/// Ranks from 1; equal samples share the mean of theirs.
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

}  // namespace

std::optional<ChangePoint> change_point(std::span<const double> samples) {
  const bool known =
      std::ranges::all_of(samples, [](double sample) { return std::isfinite(sample); });
  if (samples.size() < 2 || !known) return std::nullopt;
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

}  // namespace isoscale::analysis
