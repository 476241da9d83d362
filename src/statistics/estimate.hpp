// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

/// Computes medians and means with their intervals by pure functions; an undefined value is absent,
/// never 0.
namespace isoscale::statistics {

struct Located;  // quantiles_and_fits.hpp

/// The confidence of an interval that is computed once; nominal_confidence() is for intervals that
/// are computed repeatedly while measuring.
inline constexpr double plain_confidence = 0.95;

struct Estimate {
  double median = 0;
  std::optional<double> lower{}, upper{};  ///< confidence interval; absent for too few samples
  double minimum = 0, maximum = 0;
  std::size_t samples = 0;
  std::size_t block = 1;  ///< samples per block if they correlate, else 1
};

[[nodiscard]] bool all_finite(std::span<const double> samples);
[[nodiscard]] std::optional<double> median(std::span<const double> samples);
/// Returns the lag-1 autocorrelation; absent below 8 samples, without variance, or if a sample is
/// not finite.
[[nodiscard]] std::optional<double> autocorrelation(std::span<const double> samples);
/// Returns a number of samples per block at which the means of blocks show no correlation, or at
/// which fewer than 8 blocks are left, too few to show one. Returns 1 if the samples show none:
/// their lag-1 autocorrelation is not known, or not above the 95% bound for independent ones.
[[nodiscard]] std::size_t block_length(std::span<const double> samples);
/// Returns the means of consecutive blocks of `length` samples, without an incomplete last block.
[[nodiscard]] std::vector<double> block_means(std::span<const double> samples, std::size_t length);
/// Returns the median with its interval from order statistics, whose ranks follow from binomial(n,
/// 1/2). The interval needs n >= 6, and more samples if `confidence` (0 < confidence < 1) is above
/// 1 - 2^-5. If samples correlate, they are first averaged in blocks of block_length samples, and
/// median and interval are those of the block means; if there are too few blocks, there is no
/// interval and the median is that of all samples. Absent without samples, or if one is not finite.
[[nodiscard]] std::optional<Estimate> estimate(std::span<const double> samples,
                                               double confidence = plain_confidence);
/// Returns (upper - lower) / 2 / median of an estimate; absent without an interval, or if the
/// median is not above 0.
[[nodiscard]] std::optional<double> relative_half_width(const Estimate& estimate);
/// Returns relative_half_width() of estimate(samples, confidence); absent if either is absent.
[[nodiscard]] std::optional<double> relative_half_width(std::span<const double> samples,
                                                        double confidence);

/// A measuring loop looks at its interval each time that the number of samples has grown by this
/// factor.
inline constexpr double look_growth = 1.5;

/// Returns the confidence that each interval needs if a measurement looks at the interval up to
/// `planned` times and may stop at any look. With it, the true median lies in all intervals, and so
/// in the last one, with a probability of 95% (Pocock's constant boundary: Biometrika 64, 1977).
/// From one look to the next the number of samples grows by the factor `growth`. The standardised
/// statistics of the median at the looks are then a stationary Gaussian chain, whose neighbours
/// correlate by sqrt(1 / growth). For look_growth and up to 40 looks the confidence is read from a
/// table. For any other plan, which no version has made, it is 0.95^(1 / planned), with which the
/// probability is at least 95% however the looks correlate (Z. Sidak: J. Am. Stat. Assoc. 62,
/// 1967). Returns 0.95 for one look.
[[nodiscard]] double nominal_confidence(int planned, double growth);

/// Returns the median over launches (runs of mpirun) of their median times; `samples` is the number
/// of launches. Launches are independent. The steps inside one launch are not, because they share
/// the launch's placement, its buffers and its neighbours on the network. From 3 launches on, the
/// interval is the 95% t-interval for the centre of the logarithms of the times (Georges, Buytaert,
/// Eeckhout: Statistically rigorous Java performance evaluation, OOPSLA 2007, which treats programs
/// that are started a few times). Logarithms are used because times are positive and launches
/// differ by factors. Absent if there are no launches, or if a median is not finite or not above 0.
[[nodiscard]] std::optional<Estimate> over_launches(std::span<const double> medians);

// The declarations below compute Student's t distribution, and use it to compare the means of few
// independent samples whose spreads may differ (B. L. Welch: The generalization of Student's
// problem when several different population variances are involved, Biometrika 34, 1947).

/// Returns the 97.5% quantile of Student's t for `freedom` degrees of freedom (1 or more). Up to 30
/// it is read from a table; above 30 it is a curve that tends to the normal quantile.
[[nodiscard]] inline double student_t(std::size_t freedom) {
  constexpr std::array table{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                             2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                             2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  return freedom <= table.size() ? table[freedom - 1] : 1.96 + 2.5 / static_cast<double>(freedom);
}

/// Returns P(T > t) for Student's T with f degrees of freedom, f > 0 and not necessarily whole, by
/// the incomplete beta function I_x(f/2, 1/2), x = f / (f + t^2) (Abramowitz and Stegun 26.7.1).
[[nodiscard]] double student_tail(double t, double freedom);
/// Returns the t that Student's T exceeds with probability `tail`, 0 < tail < 1.
[[nodiscard]] double student_quantile(double tail, double freedom);

/// A mean, or a difference of means, with its uncertainty.
struct Mean {
  double value = 0;
  double variance = 0;  ///< of the value itself, not of one sample
  double freedom = 1;   ///< degrees of freedom of the variance
};

/// Returns the mean of independent samples; absent below 2 samples or if one is not finite.
[[nodiscard]] std::optional<Mean> mean_of(std::span<const double> samples);

/// Returns `to` minus `from`, two independent means with variances v1, v2 and degrees of freedom
/// f1, f2. The difference has (v1 + v2)^2 / (v1^2 / f1 + v2^2 / f2) degrees of freedom, as Welch
/// and F. E. Satterthwaite (Biometrics Bulletin 2, 1946) give them, or f1 + f2 if v1 = v2 = 0.
[[nodiscard]] Mean difference(const Mean& from, const Mean& to);

/// Returns exp(mean), with its variance from the slope of exp at the mean (delta method).
[[nodiscard]] Mean exponential(const Mean& mean);

/// The probability that the true value lies beyond one given end of a 95% interval. A one-sided
/// test at this level rejects a bound if it lies beyond that end of the interval, and only then.
inline constexpr double beyond_one_end = 0.025;

/// Returns the mean with its 95% t-interval.
[[nodiscard]] Located located(const Mean& mean);

/// Returns the one-sided probability of a value this low or lower if the true value is `bound`.
[[nodiscard]] double p_below(const Mean& mean, double bound);
/// Returns the one-sided probability of a value this high or higher if the true value is `bound`.
[[nodiscard]] double p_above(const Mean& mean, double bound);

/// Adjusts each probability for the number of tests (S. Holm, Scand. J. Statist. 6, 1979): if all
/// tests with an adjusted probability <= a are rejected, the chance of any false rejection is <= a,
/// whatever the dependence between tests. The result is in the order given.
[[nodiscard]] std::vector<double> holm(std::span<const double> probabilities);

}  // namespace isoscale::statistics
