// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <vector>

/// Computes quantiles, centres of samples, fitted lines and bounds of errors. Most of them are
/// hardly moved by a few outliers; the least-squares fits, weighted_line() and isotonic(), are.
/// Samples are assumed to be independent.
namespace isoscale::statistics {

/// A value with its 95% confidence interval; the bounds are absent if there are too few samples.
struct Located {
  double value = 0;
  std::optional<double> lower{}, upper{};

  bool operator==(const Located&) const = default;
};

[[nodiscard]] inline std::optional<double> value_of(const std::optional<Located>& located) {
  return located ? std::optional{located->value} : std::nullopt;
}

/// Returns the q-quantile of the samples (0 < q < 1), which is the sample of rank ceil(q n). Its
/// interval runs between the two innermost samples that leave at most 2.5% of the binomial(n, q)
/// distribution outside at each end; the bounds are absent if there are no such samples. The
/// quantile is absent if a sample is not finite, or if n (1 - q) < 1 (for p99, below 100 samples).
[[nodiscard]] std::optional<Located> quantile(std::span<const double> samples, double q);

/// Returns the Hodges-Lehmann estimate, which is the median of the means of all pairs of samples (a
/// sample with itself included), with the 95% interval that inverts Wilcoxon's signed-rank test.
/// The interval is exact up to 50 samples, and absent if there are fewer than 6. The estimate is
/// nearly as precise as the mean on normal noise. Absent without samples, or if one is not finite.
[[nodiscard]] std::optional<Located> centre(std::span<const double> samples);

struct Point2 {
  double x = 0, y = 0;
};
struct Line {
  double slope = 0, intercept = 0;
};
/// Fits a line through points by Theil-Sen. The slope is the median of the slopes of all pairs of
/// points. Each pair is weighted by its distance in x divided by its larger y. If noise is
/// proportional to y, it disturbs pairs with a large weight least. The intercept is the median of
/// y - slope x, weighted by 1/y. All y must be > 0. Absent below 2 different x.
[[nodiscard]] std::optional<Line> robust_line(std::span<const Point2> points);

/// A line by least squares, with the sums from which the error of its slope is computed.
struct WeightedLine : Line {
  double weights = 0;  ///< sum of all weights
  double spread = 0;   ///< weighted sum of the squared distances of x from their mean
};
struct WeightedPoint {
  double x = 0, y = 0, weight = 1;
};
/// Fits a line by weighted least squares; its slope is 0 if all x are equal. At least one
/// weight must be above 0.
[[nodiscard]] WeightedLine weighted_line(std::span<const WeightedPoint> points);

/// Returns the non-decreasing values that are closest to `values` (least squares), by the
/// pool-adjacent-violators algorithm.
[[nodiscard]] std::vector<double> isotonic(std::span<const double> values);

/// Returns the bound below which the next prediction's absolute error lies with a probability of
/// 95%, judged by n errors of held-out predictions. It is the absolute error of rank ceil(0.95 (n +
/// 1)), or the largest if n is below 19 (split-conformal prediction; the probability is then n / (n
/// + 1)). Absent below 3 errors.
[[nodiscard]] std::optional<double> promised_error(std::span<const double> errors);

}  // namespace isoscale::statistics
