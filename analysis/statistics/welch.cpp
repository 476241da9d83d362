// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/statistics/welch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "analysis/statistics/student_distribution.hpp"

namespace isoscale::analysis {

std::optional<Mean> mean_of(std::span<const double> samples) {
  constexpr std::size_t least = 2;
  const auto finite = [](double at) { return std::isfinite(at); };
  if (samples.size() < least || !std::ranges::all_of(samples, finite)) return std::nullopt;
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

}  // namespace isoscale::analysis
