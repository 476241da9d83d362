// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/comparison.hpp"

/// Declares the steps of compare(). Only sources of this folder and tests use them.
namespace isoscale::analysis::compare {

/// Returns the names that catalog::make_index() gives to the machines of a side, each once.
[[nodiscard]] std::vector<std::string> machine_names(const Side& side);

/// Joins the launches of each side to curves; without `names` the sides are "A", "B", ... Throws
/// base::UsageError if a run, recognised by its id or file, is on two sides.
[[nodiscard]] std::vector<Side> join_sides(const std::vector<std::span<const RunReport>>& sides,
                                           const std::vector<std::string>& names);

/// Fills in the compared curves, the unlike settings, and the curves and points that only one side
/// has. Throws base::UsageError if a side has no curve in common with the first, or if no curve has
/// the requested baseline.
void set_side_by_side(Comparison& comparison, const CompareOptions& options);

/// Returns one difference as text: the setting, its value and files on each side, the title of
/// the curve and, unless the whole curve differs, the rank count of the point: "mesh: dp=4 in A
/// (a.h5), dp=2,tp=2 in B (b.h5); hybrid, tiny, f32, strong scaling, packed: 4 ranks". Texts
/// that come from result files are escaped.
[[nodiscard]] std::string text_of(const Unlike& unlike);

/// Returns the settings in which the experiments of two curves differ, then those in which their
/// points with the same rank count differ. For experiments it compares executor, model with its
/// sizes, element type, scaling, placement, options and settings; for points it compares mesh,
/// options, labels and injected faults. The caller fills in the names of the sides.
[[nodiscard]] std::vector<Unlike> differences_between(const merge::JoinedCurve& here,
                                                      const merge::JoinedCurve& there);

/// Returns unintended differences between two curves of one experiment on one side: different
/// machines, and different labels or injected faults of the same point.
[[nodiscard]] std::vector<Unlike> differences_within(const merge::JoinedCurve& here,
                                                     const merge::JoinedCurve& there);

/// Returns an entry for each point of a launch on this curve that has wrong results; `there` names
/// the launch's file.
[[nodiscard]] std::vector<Unlike> not_verified(const merge::JoinedCurve& curve);

// The functions below compare two points by the values of their launches, and divide their
// difference among causes. pass_through_gate() judges each difference by the gate (a limit on the
// loss of throughput), and overall() combines all points into one result for each side.

/// A point of a curve, the launches that measured it, and its baseline. It owns none of them.
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

/// Divides the rates of all points by peaks, bandwidths and watts (normalised_rates.cpp).
void normalise_all(Comparison& comparison);

}  // namespace isoscale::analysis::compare
