// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/causes/slow_ranks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

#include "analysis/breakdown/trace_check.hpp"
#include "analysis/statistics/statistics.hpp"

namespace isoscale::analysis {
namespace {

/// How much longer counts as slow.
struct Limits {
  double least, certain, without_interval;
};
constexpr Limits against_like{.least = 1.05, .certain = 1.03, .without_interval = 1.10};
constexpr Limits by_rate{.least = 1.15, .certain = 1.10, .without_interval = 1.25};
constexpr std::size_t least_for_spread = 4;
constexpr double deviations = 4;
constexpr double normal_scale = 1.4826;  ///< median deviation to standard deviation

/// Ranks that are compared with each other, and what each one's GEMM time is divided by first.
struct Peers {
  std::vector<int> ranks;
  std::vector<double> unit;
  Limits limits = against_like;
};

std::vector<Peers> peers_of(const results::PointData& point) {
  std::map<std::uint32_t, std::vector<int>> of_program;
  for (int rank = 0; rank < point.ranks; ++rank) {
    of_program[point.outline.outline_of_rank[static_cast<std::size_t>(rank)]].push_back(rank);
  }
  std::vector<Peers> all;
  bool any_alone = false;
  for (const auto& [program, ranks] : of_program) {
    any_alone = any_alone || ranks.size() == 1;
    if (ranks.size() > 1) {
      all.push_back({.ranks = ranks, .unit = std::vector<double>(ranks.size(), 1.0)});
    }
  }
  const bool known = std::ranges::all_of(point.flop_of_rank, [](double flop) { return flop > 0; });
  if (!any_alone || !known || std::cmp_not_equal(point.flop_of_rank.size(), point.ranks)) {
    return all;
  }
  Peers mixed{.ranks = {}, .unit = point.flop_of_rank, .limits = by_rate};
  for (int rank = 0; rank < point.ranks; ++rank) mixed.ranks.push_back(rank);
  if (mixed.ranks.size() > 1) all.push_back(std::move(mixed));
  return all;
}

/// What a rank is compared with: the median of all, of two the other one.
double reference(const std::vector<double>& times, std::size_t at) {
  if (times.size() == 2) return times[1 - at];
  return median(times).value_or(0);
}

/// [peer][step]: GEMM time over the reference.
std::vector<std::vector<double>> ratios_of(const results::PointData& point, const Peers& peers) {
  std::vector<std::vector<double>> ratios(peers.ranks.size());
  for (const results::OpSums& step : point.op_sums) {
    std::vector<double> times;
    for (std::size_t i = 0; i < peers.ranks.size(); ++i) {
      times.push_back(step.gemm[static_cast<std::size_t>(peers.ranks[i])] / peers.unit[i]);
    }
    const bool measured =
        std::ranges::all_of(times, [](double time) { return std::isfinite(time) && time > 0; });
    if (!measured) continue;
    for (std::size_t i = 0; i < times.size(); ++i) {
      ratios[i].push_back(times[i] / reference(times, i));
    }
  }
  return ratios;
}

/// What a rank must exceed to stand out from the spread of its peers.
double outside_of_spread(const std::vector<double>& factors) {
  if (factors.size() < least_for_spread) return 1;
  const double middle = median(factors).value_or(1);
  std::vector<double> apart;
  for (const double factor : factors) apart.push_back(std::abs(factor - middle));
  return middle + deviations * normal_scale * median(apart).value_or(0);
}

bool is_slow(const std::vector<double>& ratios, const Estimate& factor, const Limits& limits) {
  if (factor.lower) return factor.median > limits.least && *factor.lower > limits.certain;
  return factor.median > limits.without_interval && factor.minimum > limits.certain &&
         !ratios.empty();
}

}  // namespace

std::vector<SlowRank> slow_ranks(const results::PointData& point) {
  std::vector<SlowRank> slow;
  if (point.op_sums.empty() || !outline_problem(point).empty()) return slow;
  for (const Peers& peers : peers_of(point)) {
    const auto ratios = ratios_of(point, peers);
    std::vector<std::optional<Estimate>> estimates;
    std::vector<double> factors;
    for (const auto& of_rank : ratios) {
      estimates.push_back(estimate(of_rank));
      if (estimates.back()) factors.push_back(estimates.back()->median);
    }
    const double beyond = outside_of_spread(factors);
    for (std::size_t i = 0; i < ratios.size(); ++i) {
      const auto& factor = estimates[i];
      if (!factor || factor->median <= beyond || !is_slow(ratios[i], *factor, peers.limits)) {
        continue;
      }
      const bool named = std::ranges::any_of(
          slow, [&](const SlowRank& other) { return other.rank == peers.ranks[i]; });
      if (named) continue;
      slow.push_back({.rank = peers.ranks[i],
                      .factor = factor->median,
                      .lower = factor->lower,
                      .upper = factor->upper,
                      .since = std::nullopt,
                      .by_rate = peers.limits.least == by_rate.least});
    }
  }
  return slow;
}

}  // namespace isoscale::analysis
