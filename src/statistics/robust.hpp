// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <vector>

/// Estimates that a few outliers do not move; what is undefined is absent, never 0. Samples are
/// taken as independent.
namespace isoscale::statistics {

/// A value with its 95% interval; the bounds are absent where the samples are too few for one.
struct Located {
  double value = 0;
  std::optional<double> lower{}, upper{};
};

[[nodiscard]] inline std::optional<double> value_of(const std::optional<Located>& located) {
  return located ? std::optional{located->value} : std::nullopt;
}

/// The sample of nearest rank ceil(q n), 0 < q < 1, with the interval between the order statistics
/// whose ranks enclose it by the binomial(n, q) distribution. Absent where fewer than one sample is
/// expected beyond it, n (1 - q) < 1 (p99: below 100), and for samples that are not finite.
[[nodiscard]] std::optional<Located> quantile(std::span<const double> samples, double q);

/// The Hodges-Lehmann estimate, median of all pairs' means, with the interval that inverts
/// Wilcoxon's signed-rank test (exact up to 50 samples; none below 6). Nearly as precise as the
/// mean on normal noise. Absent for no samples.
[[nodiscard]] std::optional<Located> centre(std::span<const double> samples);

struct Point2 {
  double x = 0, y = 0;
};
struct Line {
  double slope = 0, intercept = 0;
};
/// Theil-Sen: the slope is the median of all pairs' slopes, weighted by how far apart the pair is
/// in x against its larger y, which is how well a pair knows its slope under relative noise; the
/// intercept is the median of y - slope x, weighted by 1/y. All y > 0. Absent below 2 different x.
[[nodiscard]] std::optional<Line> robust_line(std::span<const Point2> points);

/// Pool adjacent violators: the closest values (least squares) that never fall.
[[nodiscard]] std::vector<double> isotonic(std::span<const double> values);

/// The half-width that held-out errors promise for the next one: of n absolute errors the one of
/// rank ceil(0.95 (n + 1)), the largest where there are fewer than 19 (split-conformal prediction;
/// it then covers with n / (n + 1)). Absent below 3.
[[nodiscard]] std::optional<double> promised_error(std::span<const double> errors);

}  // namespace isoscale::statistics
