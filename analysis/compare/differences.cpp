// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/differences.hpp"

#include <algorithm>
#include <cmath>

namespace isoscale::analysis {
namespace {

std::vector<double> log_throughputs(std::span<const LaunchPoint> launches) {
  std::vector<double> logs;
  for (const LaunchPoint& at : launches) logs.push_back(std::log(*at.point->throughput));
  return logs;
}

/// Of each launch that holds both.
std::vector<double> paired_efficiencies(const PointLaunches& of) {
  std::vector<double> efficiencies;
  for (const LaunchPoint& at : of.launches) {
    const auto base = std::ranges::find(of.of_baseline, at.run, &LaunchPoint::run);
    if (base == of.of_baseline.end()) continue;
    efficiencies.push_back(*at.point->throughput / *base->point->throughput *
                           base->point->data->ranks / at.point->data->ranks);
  }
  return efficiencies;
}

std::optional<Located> efficiency_difference(const PointLaunches& first,
                                             const PointLaunches& here) {
  const auto &a = first.point->efficiency, &b = here.point->efficiency;
  if (!a || !b || first.point == first.baseline) return std::nullopt;
  Located result{.value = *b - *a};
  const std::optional<Mean> of_first = efficiency_of(first), of_here = efficiency_of(here);
  if (of_first && of_here) {
    const Located interval = located(difference(*of_first, *of_here));
    result.lower = interval.lower;
    result.upper = interval.upper;
  }
  return result;
}

Verdict without_gate(const Located& throughput) {
  if (!throughput.lower) return Verdict::one_launch;
  if (!is_established(throughput, 1)) return Verdict::no_difference;
  return throughput.value < 1 ? Verdict::slower : Verdict::faster;
}

}  // namespace

bool holds_value(const Located& at) {
  constexpr double rounding = 1e-9;
  const double within = rounding * (1 + std::abs(at.value));
  return !at.lower || (at.value >= *at.lower - within && at.value <= *at.upper + within);
}

bool is_established(const Located& at, double none) {
  return at.lower && (*at.upper < none || *at.lower > none) && holds_value(at);
}

PointLaunches point_launches(const SideCurve& of, int ranks, std::optional<int> baseline) {
  PointLaunches result;
  for (std::size_t i = 0; i < of.curve.points.size(); ++i) {
    const PointReport& point = of.curve.points[i];
    if (point.data->ranks == ranks) {
      result.point = &point;
      result.launches = of.joined->launches[i];
    }
    if (point.data->ranks == baseline) {
      result.baseline = &point;
      result.of_baseline = of.joined->launches[i];
    }
  }
  return result;
}

std::optional<Mean> log_throughput(std::span<const LaunchPoint> launches) {
  if (launches.size() < least_launches) return std::nullopt;
  return mean_of(log_throughputs(launches));
}

std::optional<Mean> efficiency_of(const PointLaunches& at) {
  const std::vector<double> paired = paired_efficiencies(at);
  if (paired.size() >= least_launches) return mean_of(paired);
  const std::optional<Mean> base = log_throughput(at.of_baseline);
  const std::optional<Mean> point = log_throughput(at.launches);
  if (!base || !point) return std::nullopt;
  Mean ratio = difference(*base, *point);
  ratio.value += std::log(static_cast<double>(at.baseline->data->ranks) / at.point->data->ranks);
  return exponential(ratio);
}

Difference difference_between(const PointLaunches& first, const PointLaunches& here) {
  Difference result{.ranks = here.point->data->ranks,
                    .launches_first = first.launches.size(),
                    .launches = here.launches.size()};
  result.throughput.value = *here.point->throughput / *first.point->throughput;
  const auto of_first = log_throughput(first.launches), of_here = log_throughput(here.launches);
  if (of_first && of_here) {
    result.log_ratio = difference(*of_first, *of_here);
    const Located logs = located(*result.log_ratio);
    result.throughput.lower = std::exp(*logs.lower);
    result.throughput.upper = std::exp(*logs.upper);
  }
  result.efficiency = efficiency_difference(first, here);
  result.verdict = without_gate(result.throughput);
  const bool baseline = first.point == first.baseline;
  result.why = why(*first.point, *here.point, baseline ? AtBaseline::yes : AtBaseline::no);
  return result;
}

}  // namespace isoscale::analysis
