// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/statistics/robust.hpp"

/// Means of few independent samples, and how two of them differ when their spreads may differ too
/// (B. L. Welch: The generalization of Student's problem when several different population
/// variances are involved, Biometrika 34, 1947).
namespace isoscale::analysis {

/// A mean, or a difference of means, with how well it is known.
struct Mean {
  double value = 0;
  double variance = 0;  ///< of the value itself, not of one sample
  double freedom = 1;   ///< degrees of freedom of the variance
};

/// Of independent samples; absent below 2 and unless all are finite.
[[nodiscard]] std::optional<Mean> mean_of(std::span<const double> samples);

/// to - from, of independent means. Degrees of freedom (v1 + v2)^2 / (v1^2 / f1 + v2^2 / f2), as
/// Welch and F. E. Satterthwaite (Biometrics Bulletin 2, 1946) give them.
[[nodiscard]] Mean difference(const Mean& from, const Mean& to);

/// exp(mean), the variance by its slope there (delta method).
[[nodiscard]] Mean exponential(const Mean& mean);

/// The chance that the truth lies beyond one end of a 95% interval. A one-sided test at this level
/// rejects a bound exactly where the interval leaves it out.
inline constexpr double beyond_one_end = 0.025;

/// With its 95% t-interval.
[[nodiscard]] Located located(const Mean& mean);

/// One-sided: how likely a value as low as this one, or lower, is when the truth is `bound`.
[[nodiscard]] double p_below(const Mean& mean, double bound);
/// Likewise as high, or higher.
[[nodiscard]] double p_above(const Mean& mean, double bound);

/// Each probability adjusted for that all of them are looked at: rejecting those <= a keeps the
/// chance of any false rejection <= a, however the tests depend on each other (S. Holm, Scand. J.
/// Statist. 6, 1979). In the order given.
[[nodiscard]] std::vector<double> holm(std::span<const double> probabilities);

}  // namespace isoscale::analysis
