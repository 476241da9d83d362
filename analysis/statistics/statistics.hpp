// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

/// Statistics as pure functions; what is undefined is absent, never 0.
namespace isoscale::analysis {

/// Of an interval that is asked for once.
inline constexpr double plain_confidence = 0.95;

struct Estimate {
  double median = 0;
  std::optional<double> lower{}, upper{};  ///< interval; absent below 6 effective samples
  double minimum = 0, maximum = 0;
  std::size_t samples = 0;
  std::size_t block = 1;  ///< samples per block when they were correlated, else 1
};

[[nodiscard]] std::optional<double> median(std::span<const double> samples);
/// Lag-1 autocorrelation; absent below 8 samples or without variance.
[[nodiscard]] std::optional<double> autocorrelation(std::span<const double> samples);
/// Samples per block from which the means of blocks show no correlation: 1 when the lag-1
/// autocorrelation of the samples themselves stays within the 95% bound of independent ones.
[[nodiscard]] std::size_t block_length(std::span<const double> samples);
/// Means of consecutive blocks of `length` samples; the rest at the end is left out.
[[nodiscard]] std::vector<double> block_means(std::span<const double> samples, std::size_t length);
/// Median with its interval from order statistics (ranks of the binomial(n, 1/2); n >= 6, and more
/// where `confidence`, 0 < confidence < 1, is above 1 - 2^-5). Samples that correlate are first
/// averaged in blocks of block_length, and median and interval are those of the blocks; where the
/// blocks are too few there is no interval and the median is of all samples. Absent for no samples
/// and for NaN or infinite ones.
[[nodiscard]] std::optional<Estimate> estimate(std::span<const double> samples,
                                               double confidence = plain_confidence);
/// (upper - lower) / 2 / median of an estimate; absent without an interval.
[[nodiscard]] std::optional<double> relative_half_width(const Estimate& estimate);

}  // namespace isoscale::analysis
