// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/statistics/over_launches.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "analysis/statistics/student.hpp"

namespace isoscale::analysis {
namespace {

constexpr std::size_t least_for_interval = 3;

void add_interval(std::span<const double> medians, Estimate& estimate) {
  const auto n = static_cast<double>(medians.size());
  double mean = 0;
  for (const double median : medians) mean += std::log(median) / n;
  double squares = 0;
  for (const double median : medians) squares += std::pow(std::log(median) - mean, 2);
  const double half = student_t(medians.size() - 1) * std::sqrt(squares / (n - 1) / n);
  estimate.lower = std::exp(mean - half);
  estimate.upper = std::exp(mean + half);
}

}  // namespace

std::optional<Estimate> over_launches(std::span<const double> medians) {
  const bool usable =
      std::ranges::all_of(medians, [](double at) { return std::isfinite(at) && at > 0; });
  const auto middle = median(medians);
  if (!usable || !middle) return std::nullopt;
  Estimate estimate{.median = *middle,
                    .minimum = std::ranges::min(medians),
                    .maximum = std::ranges::max(medians),
                    .samples = medians.size()};
  if (medians.size() >= least_for_interval) add_interval(medians, estimate);
  return estimate;
}

std::optional<double> launch_spread(const Estimate& launches) {
  if (launches.samples < 2) return std::nullopt;
  return (launches.maximum - launches.minimum) / launches.median;
}

}  // namespace isoscale::analysis
