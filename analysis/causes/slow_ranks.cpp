// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/causes/slow_ranks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include "analysis/breakdown/trace_check.hpp"
#include "statistics/estimate.hpp"
#include "statistics/trend.hpp"

namespace isoscale::analysis {
namespace {

/// How much longer counts as slow.
struct Limits {
  double least, certain, without_interval;
};
constexpr Limits against_like{.least = 1.05, .certain = 1.03, .without_interval = 1.10};
constexpr Limits against_all{.least = 1.15, .certain = 1.10, .without_interval = 1.25};
constexpr double smallest_change = 0.03;  ///< relative: what a rank becomes slower by
constexpr std::size_t fewest_steps = 6;
constexpr std::size_t least_for_spread = 4;
constexpr double deviations = 4;
constexpr double normal_scale = 1.4826;  ///< median deviation to standard deviation

/// Ranks that are compared with each other, and what each one's GEMM time is divided by first.
struct Peers {
  std::vector<int> ranks;
  std::vector<double> unit;
  Limits limits = against_like;
  bool by_rate = false;
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
  Peers mixed{.ranks = {}, .unit = point.flop_of_rank, .limits = against_all, .by_rate = true};
  for (int rank = 0; rank < point.ranks; ++rank) mixed.ranks.push_back(rank);
  if (mixed.ranks.size() > 1) all.push_back(std::move(mixed));
  return all;
}

/// What a rank is compared with: the median of all, of two the other one.
double reference(const std::vector<double>& times, std::size_t at) {
  if (times.size() == 2) return times[1 - at];
  return median(times).value_or(0);
}

/// GEMM times over the reference, in the steps in which all peers have one.
struct Ratios {
  std::vector<std::uint32_t> step;           ///< number among all steps of the point
  std::vector<std::vector<double>> of_peer;  ///< [peer][step]
};

Ratios ratios_of(const results::PointData& point, const Peers& peers) {
  Ratios ratios{.step = {}, .of_peer = std::vector<std::vector<double>>(peers.ranks.size())};
  for (const results::OpSums& step : point.op_sums) {
    if (!step_counts(point, step.step)) continue;
    if (std::cmp_not_equal(step.gemm.size(), point.ranks)) continue;
    std::vector<double> times;
    for (std::size_t i = 0; i < peers.ranks.size(); ++i) {
      times.push_back(step.gemm[static_cast<std::size_t>(peers.ranks[i])] / peers.unit[i]);
    }
    const bool measured =
        std::ranges::all_of(times, [](double time) { return std::isfinite(time) && time > 0; });
    if (!measured) continue;
    ratios.step.push_back(step.step);
    for (std::size_t i = 0; i < times.size(); ++i) {
      ratios.of_peer[i].push_back(times[i] / reference(times, i));
    }
  }
  return ratios;
}

/// How much a peer takes longer, since it last became slower.
struct Slowness {
  std::size_t first = 0;  ///< of its ratios; 0 = all along
  Estimate factor;
};

std::optional<Slowness> slowness(std::span<const double> ratios) {
  const std::size_t change = last_change(ratios, smallest_change);
  const bool slower = change > 0 && median(ratios.subspan(change)).value_or(0) >
                                        median(ratios.first(change)).value_or(0);
  const std::size_t first = slower ? change : 0;
  const auto factor = estimate(ratios.subspan(first));
  if (!factor) return std::nullopt;
  return Slowness{.first = first, .factor = *factor};
}

/// What a rank must exceed to stand out from the spread of its peers.
double outside_of_spread(const std::vector<double>& factors) {
  if (factors.size() < least_for_spread) return 1;
  const double middle = median(factors).value_or(1);
  std::vector<double> apart;
  for (const double factor : factors) apart.push_back(std::abs(factor - middle));
  return middle + deviations * normal_scale * median(apart).value_or(0);
}

bool is_slow(const Estimate& factor, const Limits& limits) {
  if (factor.samples < fewest_steps) return false;
  if (factor.lower) return factor.median > limits.least && *factor.lower > limits.certain;
  // Ratios that depend on those before have no interval: then all of them must be certain.
  return factor.median > limits.without_interval && factor.minimum > limits.certain;
}

void add_slow(const results::PointData& point, const Peers& peers, std::vector<SlowRank>& slow) {
  const Ratios ratios = ratios_of(point, peers);
  if (ratios.step.empty()) return;
  std::vector<Slowness> all;
  std::vector<double> factors;
  for (const auto& of_peer : ratios.of_peer) {
    const auto found = slowness(of_peer);
    if (!found) return;
    all.push_back(*found);
    factors.push_back(found->factor.median);
  }
  const double beyond = outside_of_spread(factors);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [first, factor] = all[i];
    const bool named = std::ranges::find(slow, peers.ranks[i], &SlowRank::rank) != slow.end();
    if (named || factor.median <= beyond || !is_slow(factor, peers.limits)) continue;
    slow.push_back({.rank = peers.ranks[i],
                    .factor = factor.median,
                    .lower = factor.lower,
                    .upper = factor.upper,
                    .since = first == 0 ? std::nullopt : std::optional{ratios.step[first]},
                    .by_rate = peers.by_rate});
  }
}

}  // namespace

std::vector<SlowRank> slow_ranks(const results::PointData& point) {
  std::vector<SlowRank> slow;
  if (point.op_sums.empty() || !outline_problem(point).empty()) return slow;
  for (const Peers& peers : peers_of(point)) add_slow(point, peers, slow);
  return slow;
}

}  // namespace isoscale::analysis
