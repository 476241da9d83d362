// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "statistics/robust.hpp"

/// Computes Student's t distribution, and uses it to compare the means of few independent samples
/// whose spreads may differ (B. L. Welch: The generalization of Student's problem when several
/// different population variances are involved, Biometrika 34, 1947).
namespace isoscale::statistics {

/// Returns the 97.5% quantile of Student's t for `freedom` degrees of freedom (1 or more). Up to 30
/// it is read from a table; above 30 it is a curve that tends to the normal quantile.
[[nodiscard]] inline double student_t(std::size_t freedom) {
  constexpr std::array table{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                             2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                             2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  return freedom <= table.size() ? table[freedom - 1] : 1.96 + 2.5 / static_cast<double>(freedom);
}

/// Returns P(T > t) for any degrees of freedom > 0, whole or not, from the regularised incomplete
/// beta function I_x(f/2, 1/2), x = f / (f + t^2) (Abramowitz and Stegun 26.7.1).
[[nodiscard]] double student_tail(double t, double freedom);
/// Returns the t that T exceeds with probability `tail`, 0 < tail < 1.
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
