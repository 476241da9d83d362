// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "analysis/compare/comparison.hpp"

/// How far two points are apart, from what each launch measured.
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

/// The mean logarithm of the launches' throughputs; absent below 3 launches.
[[nodiscard]] std::optional<Mean> log_throughput(std::span<const LaunchPoint> launches);

/// Efficiency of a point from its launches: where 3 launches or more hold the point and its
/// baseline, the mean of each one's own, so that what a launch has in both cancels; else that of
/// the mean logarithms of all, as if the baseline's launches were others. Absent with fewer.
[[nodiscard]] std::optional<Mean> efficiency_of(const PointLaunches& at);

/// True without an interval, and if the interval holds its value: the two are not of one estimate
/// (see Difference), so that one may lie off the other.
[[nodiscard]] bool holds_value(const Located& at);
/// True if the 95% interval leaves out `none`, which is no difference, and holds the value.
[[nodiscard]] bool is_established(const Located& at, double none);

/// Everything but curve and side, and what a gate says. Without one, of 3 launches and more on both
/// sides, "slower" and "faster" are those whose difference is established.
[[nodiscard]] Difference difference_between(const PointLaunches& first, const PointLaunches& here);

}  // namespace isoscale::analysis
