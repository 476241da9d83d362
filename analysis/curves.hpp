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

/// Sorts points into curves, and compares each with the baseline of its curve.
namespace isoscale::analysis {

/// Sorts points into curves, names the curves and compares each point with the baseline of its
/// curve.
[[nodiscard]] std::vector<Curve> make_curves(std::vector<PointReport> points,
                                             const ReportOptions& options);

/// Chooses the point that is shown on behalf of several. Points without labels are preferred, then
/// those whose labels do not say that ranks shared hardware, then all that are ok; among these, the
/// point with the most ranks. Null where none is ok.
[[nodiscard]] const PointReport* telling_point(const std::vector<const PointReport*>& points);
/// Chooses the point that is shown on behalf of a curve, from its points with a throughput. The
/// baseline says nothing of scaling, so it is chosen only if there is no other.
[[nodiscard]] const PointReport* telling_point(const Curve& curve);

/// Appends texts[i] to names[i] if another entry has the same base, bases[i], but a different text.
/// Empty texts are ignored.
void tell_apart(std::vector<std::string>& names, const std::vector<std::string>& bases,
                const std::vector<std::string>& texts);
/// Appends to names[i] the text of curve i's telling point, if another curve with the same base has
/// a different text at a rank count that both have.
void tell_apart(std::vector<std::string>& names, const std::vector<std::string>& bases,
                std::span<const Curve* const> curves,
                const std::function<std::string(const PointReport&)>& text_of);
/// Makes the names of curves differ if only their meshes or microbatches do: appends the mesh, or
/// the microbatch if the meshes are equal too.
void tell_meshes_apart(std::vector<std::string>& names, std::span<const Curve* const> curves);

/// Returns the experiment that the points of a curve have in common. The curve has at least one
/// point.
[[nodiscard]] Experiment experiment_of(const Curve& curve);

/// A rank count that efficiency could be relative to.
struct BaselineCandidate {
  int ranks = 0;
  bool shares_hardware = false;  ///< a point of this count is labelled oversubscribed or shared-gpu
};

/// Chooses the baseline for reports, joined launches, comparisons and predictions: the smallest
/// count, where candidates whose ranks share hardware are considered only if all candidates' ranks
/// do. The number of steps plays no part. Absent without candidates. `candidates` ascend in ranks.
[[nodiscard]] std::optional<int> baseline_ranks(std::span<const BaselineCandidate> candidates);

/// Returns "1 rank", "4 ranks", "1 node of 8 ranks"; "" for a curve without a baseline.
[[nodiscard]] std::string baseline_name(const Curve& curve);

/// Returns the point that the curve's efficiency is relative to; null where there is none.
[[nodiscard]] const PointReport* baseline_point(const Curve& curve);

/// True if the baseline has too few steps for an interval, so that every efficiency of the curve is
/// uncertain.
[[nodiscard]] bool has_unsure_baseline(const Curve& curve);

/// Gives the points of a curve, ascending in ranks, their speed-up, efficiency and losses relative
/// to its baseline (see baseline_ranks), or to the baseline that `options` names.
void set_against_baseline(Curve& curve, const ReportOptions& options);

/// Returns the step and its costs, in the form that the waterfall takes; absent without traces and
/// step times.
[[nodiscard]] std::optional<efficiency::StepLoss> step_loss(const PointReport& point);

}  // namespace isoscale::analysis
