// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/launches/experiment.hpp"
#include "analysis/report.hpp"

namespace isoscale::analysis {

/// Sorts points into curves, names these and sets each point against its curve's baseline.
[[nodiscard]] std::vector<Curve> make_curves(std::vector<PointReport> points,
                                             const ReportOptions& options);

/// What the points of a curve have in common. The curve has one.
[[nodiscard]] Experiment experiment_of(const Curve& curve);

/// A rank count that efficiency could be relative to.
struct BaselineCandidate {
  int ranks = 0;
  bool shares_hardware = false;  ///< a point of this count is labelled oversubscribed or shared-gpu
};

/// The rule by which reports, joined launches, comparisons and predictions choose a baseline: the
/// smallest count, and one whose ranks share hardware only where those of all candidates do. The
/// number of steps plays no part. Absent without candidates, which are ascending in ranks.
[[nodiscard]] std::optional<int> baseline_ranks(std::span<const BaselineCandidate> candidates);

/// "1 rank", "4 ranks", "1 node of 8 ranks"; "" for a curve without a baseline.
[[nodiscard]] std::string baseline_name(const Curve& curve);

/// The point that the curve's efficiency is relative to; null where there is none.
[[nodiscard]] const PointReport* baseline_point(const Curve& curve);

/// True if too few steps of the baseline count for an interval, so that every efficiency of the
/// curve is unsure.
[[nodiscard]] bool has_unsure_baseline(const Curve& curve);

/// Gives the points of a curve, ascending in ranks, speed-up, efficiency and losses relative to its
/// baseline (see baseline_ranks), or to the one that `options` names.
void set_against_baseline(Curve& curve, const ReportOptions& options);

}  // namespace isoscale::analysis
