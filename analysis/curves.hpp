// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/identity.hpp"
#include "analysis/report.hpp"

/// Sorts points into curves, and sets each against the baseline of its curve.
namespace isoscale::analysis {

/// Sorts points into curves, names these and sets each point against its curve's baseline.
[[nodiscard]] std::vector<Curve> make_curves(std::vector<PointReport> points,
                                             const ReportOptions& options);

/// Chooses the point that is shown for several of one kind: the largest rank count of those without
/// a label, else of those whose labels do not say that ranks shared something, else of all that are
/// ok. Null where none is.
[[nodiscard]] const PointReport* telling_point(const std::vector<const PointReport*>& points);
/// The same of the points of a curve that have a throughput; the baseline, which says nothing of
/// scaling, only for want of another.
[[nodiscard]] const PointReport* telling_point(const Curve& curve);

/// Appends to each name the text of its place, where names that `bases` has as one have different
/// texts.
void tell_apart(std::vector<std::string>& names, const std::vector<std::string>& bases,
                const std::vector<std::string>& texts);
/// The same by what is said of points: appends the text of each curve's telling point, where two
/// curves of one base differ at a rank count that both have.
void tell_apart(std::vector<std::string>& names, const std::vector<std::string>& bases,
                std::span<const Curve* const> curves,
                const std::function<std::string(const PointReport&)>& text_of);
/// Curves that differ in their meshes or microbatches alone get one title: appends the mesh, and
/// where that is the same too, the microbatch.
void tell_meshes_apart(std::vector<std::string>& names, std::span<const Curve* const> curves);

/// The experiment that the points of a curve have in common. The curve has a point.
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

/// The step and its costs, as the waterfall takes them; absent without traces and step times.
[[nodiscard]] std::optional<StepLoss> step_loss(const PointReport& point);

}  // namespace isoscale::analysis
