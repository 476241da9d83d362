// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/comparison.hpp"

/// The difference of two points from what each launch measured, the causes that it goes to, and
/// what all points together say: the gate, and each side as a whole.
namespace isoscale::analysis {

/// A point of a curve over its launches, and the baseline it is set against. Not owned.
struct PointLaunches {
  const PointReport* point = nullptr;  ///< over launches
  std::span<const LaunchPoint> launches;
  const PointReport* baseline = nullptr;  ///< null where there is none
  std::span<const LaunchPoint> of_baseline;
};
[[nodiscard]] PointLaunches point_launches(const SideCurve& of, int ranks,
                                           std::optional<int> baseline);

/// From this many launches on there is an interval.
inline constexpr std::size_t least_launches = 3;

/// True without an interval, and if the interval holds its value: the two are not of one estimate
/// (see Difference), so that one may lie off the other.
[[nodiscard]] bool holds_value(const statistics::Located& at);
/// True if the 95% interval leaves out `none`, which is no difference, and holds the value.
[[nodiscard]] bool is_established(const statistics::Located& at, double none);

/// Everything but curve and side, and what a gate says. Without one, of 3 launches and more on both
/// sides, "slower" and "faster" are those whose difference is established.
[[nodiscard]] Difference difference_between(const PointLaunches& first, const PointLaunches& here);

/// Losses of efficiency by cause of two points against their baselines, `there` less `here`. Where
/// one waterfall separates less than the other, both are as coarse.
[[nodiscard]] std::vector<CausePart> efficiency_causes(const Waterfall& here,
                                                       const Waterfall& there);

/// Parts of an absolute size of `limit` and more, largest first, and "other causes", what is left;
/// behind it untraced_part.
[[nodiscard]] std::vector<CausePart> above(std::vector<CausePart> parts, double limit);

/// Puts each difference to two one-sided Welch tests on the logarithms of the launches' throughput:
/// that the loss is larger than `loss` (against: at most), and that it is smaller (against: at
/// least). The probabilities of either are adjusted for the number of points by Holm, over all
/// curves and sides, and the verdicts are given at 2.5%, the level of either end of the 95%
/// interval: a point whose verdict is `regression` has an interval below the gate. Points of fewer
/// than 3 launches on a side are not tested.
[[nodiscard]] Gate pass_through_gate(std::span<Difference> differences, double loss,
                                     CompareOptions::Untold untold);

/// Each side but the first over all points that were compared with the first; see Overall.
[[nodiscard]] std::vector<Overall> overall(const Comparison& of);

}  // namespace isoscale::analysis
