// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "analysis/compare/comparison.hpp"

/// Compares two points by the values of their launches, divides their difference among causes, and
/// combines all points into one overall result for each side and into verdicts by the gate (a limit
/// on the loss of throughput).
namespace isoscale::analysis::compare {

/// A point of a curve, the launches that measured it, and its baseline. The struct owns none of
/// them.
struct PointLaunches {
  const PointReport* point = nullptr;  ///< the point's results over all launches
  std::span<const merge::LaunchPoint> launches;
  const PointReport* baseline = nullptr;  ///< null if the curve has no baseline
  std::span<const merge::LaunchPoint> of_baseline;
};
[[nodiscard]] PointLaunches point_launches(const SideCurve& of, int ranks,
                                           std::optional<int> baseline);

/// The smallest number of launches from which an interval is computed.
inline constexpr std::size_t least_launches = 3;

/// True if the value lies inside its interval, or if there is no interval. The value comes from
/// medians over launches and the interval from means, so the value may lie outside.
[[nodiscard]] bool holds_value(const statistics::Located& at);
/// True if the 95% interval contains the value itself and excludes `none`, the number that means no
/// difference (1 for ratios, 0 for differences).
[[nodiscard]] bool is_established(const statistics::Located& at, double none);

/// Returns the difference of two points, without `curve`, `side` and the p-values, which are set
/// later. The verdicts "slower" and "faster" mean that the difference is established, which needs
/// at least 3 launches on both sides.
[[nodiscard]] Difference difference_between(const PointLaunches& first, const PointLaunches& here);

/// Returns, for each cause, the efficiency lost to it in `there` minus that lost in `here`, each
/// relative to the point's own baseline. If only one of the waterfalls (lists of causes with the
/// time lost to each) separates some causes, their sum is used for both.
[[nodiscard]] std::vector<CausePart> efficiency_causes(const efficiency::Waterfall& here,
                                                       const efficiency::Waterfall& there);

/// Returns the causes with an absolute size of at least `limit`, the largest first, then "other
/// causes" with the sum of the smaller causes, if any, and at last untraced_part, unless it is 0.
[[nodiscard]] std::vector<CausePart> above(std::vector<CausePart> parts, double limit);

/// Sets the p-values and the verdict of each difference, and returns the overall result of the
/// gate. Two one-sided Welch tests are applied to the logarithms of the launches' throughput: one
/// shows that the loss is larger than `loss` (null hypothesis: at most `loss`), the other that it
/// is smaller (null hypothesis: at least `loss`). Holm's method adjusts the p-values of each test
/// for the number of points over all curves and sides. The level is 2.5%, the same as at either end
/// of the 95% interval, so the interval of a point with the verdict `regression` lies below 1 -
/// `loss`. Points with fewer than 3 launches on a side are not tested.
[[nodiscard]] Gate pass_through_gate(std::span<Difference> differences, double loss);

/// Compares each side except the first with the first side over all points.
[[nodiscard]] std::vector<Overall> overall(const Comparison& of);

}  // namespace isoscale::analysis::compare
