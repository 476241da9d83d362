// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>

/// Statistics as pure functions; what is undefined is absent, never 0.
namespace isoscale::analysis {

struct Estimate {
  double median = 0;
  std::optional<double> lower, upper;  ///< 95% interval; absent below 6 effective samples
  double minimum = 0, maximum = 0;
  std::size_t samples = 0;
  std::size_t block = 1;  ///< samples per block when they were correlated, else 1
};

[[nodiscard]] std::optional<double> median(std::span<const double> samples);
/// Lag-1 autocorrelation; absent below 8 samples or without variance.
[[nodiscard]] std::optional<double> autocorrelation(std::span<const double> samples);
/// Median with its 95% interval from order statistics (ranks of the binomial(n, 1/2); n >= 6). When
/// the lag-1 autocorrelation exceeds its own 95% bound, the samples are first averaged in blocks
/// whose length removes it, and median and interval are those of the blocks; below 6 blocks there
/// is no interval and the median is of all samples. Absent for no samples and for NaN or infinite
/// ones.
[[nodiscard]] std::optional<Estimate> estimate(std::span<const double> samples);
/// (upper - lower) / 2 / median of an estimate; absent without an interval.
[[nodiscard]] std::optional<double> relative_half_width(const Estimate& estimate);

}  // namespace isoscale::analysis
