// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

/// Computes medians and their intervals by pure functions; an undefined value is absent, never 0.
namespace isoscale::statistics {

/// The confidence of an interval that is computed once; nominal_confidence() is for intervals that
/// are computed repeatedly while measuring.
inline constexpr double plain_confidence = 0.95;

struct Estimate {
  double median = 0;
  std::optional<double> lower{}, upper{};  ///< interval; absent for too few samples or blocks
  double minimum = 0, maximum = 0;
  std::size_t samples = 0;
  std::size_t block = 1;  ///< samples per block if they correlate, else 1
};

[[nodiscard]] bool all_finite(std::span<const double> samples);
[[nodiscard]] std::optional<double> median(std::span<const double> samples);
/// Returns the lag-1 autocorrelation; absent below 8 samples, without variance, or if not finite.
[[nodiscard]] std::optional<double> autocorrelation(std::span<const double> samples);
/// Returns a number of samples per block at which the means of blocks show no correlation, or at
/// which fewer than 8 blocks are left, too few to show one. Returns 1 if the samples show none:
/// their lag-1 autocorrelation is not known, or not above the 95% bound for independent ones.
[[nodiscard]] std::size_t block_length(std::span<const double> samples);
/// Returns the means of consecutive blocks of `length` samples; the rest at the end is left out.
[[nodiscard]] std::vector<double> block_means(std::span<const double> samples, std::size_t length);
/// Returns the median with its interval from order statistics, whose ranks follow from binomial(n,
/// 1/2). The interval needs n >= 6, and more samples if `confidence` (0 < confidence < 1) is above
/// 1 - 2^-5. If samples correlate, they are first averaged in blocks of block_length samples, and
/// median and interval are those of the block means; if there are too few blocks, there is no
/// interval and the median is that of all samples. Absent without samples, or if one is not finite.
[[nodiscard]] std::optional<Estimate> estimate(std::span<const double> samples,
                                               double confidence = plain_confidence);
/// Returns (upper - lower) / 2 / median of an estimate; absent without an interval or a median > 0.
[[nodiscard]] std::optional<double> relative_half_width(const Estimate& estimate);
/// Returns relative_half_width of estimate(samples, confidence); absent if one of them is.
[[nodiscard]] std::optional<double> relative_half_width(std::span<const double> samples,
                                                        double confidence);

/// Returns the confidence that each interval needs if a measurement looks at the interval up to
/// `planned` times and may stop at any look. With it, the true median lies in all intervals, and so
/// in the last one, with a probability of 95% (Pocock's constant boundary: Biometrika 64, 1977).
/// From one look to the next the number of samples grows by the factor `growth` >= 1. The
/// standardised statistics of the median at the looks are then a stationary Gaussian chain, whose
/// neighbours correlate by sqrt(1 / growth). Its probability to stay within the boundary is
/// integrated look by look (Armitage, McPherson, Rowe: J. R. Stat. Soc. A 132, 1969). Returns 0.95
/// for one look, and for a `growth` below 1.02, because such looks count as one.
[[nodiscard]] double nominal_confidence(int planned, double growth);

/// Returns the median over launches (runs of mpirun) of their median times; `samples` is the number
/// of launches. Launches are independent. The steps inside one launch are not, because they share
/// the launch's placement, its buffers and its neighbours on the network. From 3 launches on, the
/// interval is the 95% t-interval for the centre of the logarithms of the times (Georges, Buytaert,
/// Eeckhout: Statistically rigorous Java performance evaluation, OOPSLA 2007, which treats programs
/// that are started a few times). Logarithms are used because times are positive and launches
/// differ by factors. Absent if there are no launches, or if a median is not finite or not above 0.
[[nodiscard]] std::optional<Estimate> over_launches(std::span<const double> medians);

}  // namespace isoscale::statistics
