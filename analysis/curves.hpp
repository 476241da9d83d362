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

/// Sorts points into curves, and compares each point with the baseline of its curve.
namespace isoscale::analysis {

/// Sorts points into curves, names the curves and compares each point with the baseline of its
/// curve.
[[nodiscard]] std::vector<Curve> make_curves(std::vector<PointReport> points,
                                             const ReportOptions& options);

/// Chooses the point that represents several points in a report. Points without labels come first,
/// then points whose labels still allow them as scaling results, then all other points that are ok.
/// Among equally good points the one with the most ranks is chosen. Null if no point is ok.
[[nodiscard]] const PointReport* telling_point(const std::vector<const PointReport*>& points);
/// Chooses the point that represents a curve in a report, as the function above does, from the
/// points with a throughput. The baseline does not show how the curve scales, so it is chosen only
/// if no other point has a throughput. Null if no point has one.
[[nodiscard]] const PointReport* telling_point(const Curve& curve);

/// Makes names unique: appends texts[i] to names[i] if some other entry j has the same base
/// (bases[j] == bases[i]) but a different text. An empty text is neither appended nor counted as
/// different.
void tell_apart(std::vector<std::string>& names, const std::vector<std::string>& bases,
                const std::vector<std::string>& texts);
/// Makes the names of curves unique: appends to names[i] the text that `text_of` returns for the
/// telling_point() of curve i. The text is appended if another curve with the same entry in `bases`
/// has a different text at a rank count that both curves have.
void tell_apart(std::vector<std::string>& names, const std::vector<std::string>& bases,
                std::span<const Curve* const> curves,
                const std::function<std::string(const PointReport&)>& text_of);
/// Makes the names of curves unique. It appends the meshes of curves with equal names, or the
/// microbatches if the meshes are equal too.
void tell_meshes_apart(std::vector<std::string>& names, std::span<const Curve* const> curves);
/// Makes the names of experiments unique that a launch measured more than once: appends "repeat 2"
/// to the second of equal names, "repeat 3" to the third, and so on.
void tell_repeats_apart(std::vector<std::string>& names);

/// Returns the point of a curve with this rank count (not owned); null if there is none.
[[nodiscard]] const PointReport* point_of(const Curve& curve, int ranks);

/// Returns the experiment that the points of a curve have in common. The curve has at least one
/// point.
[[nodiscard]] Experiment experiment_of(const Curve& curve);

/// A rank count that may become the baseline of a curve.
struct BaselineCandidate {
  int ranks = 0;
  /// True if a point with `ranks` ranks has the label oversubscribed or shared-gpu.
  bool shares_hardware = false;
};

/// Chooses the baseline for reports, joined launches, comparisons and predictions: the smallest
/// rank count whose ranks do not share cores or GPUs, or the smallest of all if every candidate
/// shares them. A label few-steps does not matter. Absent if there are no candidates. `candidates`
/// ascend in ranks.
[[nodiscard]] std::optional<int> baseline_ranks(std::span<const BaselineCandidate> candidates);

/// Returns "1 rank", "4 ranks", "1 node of 8 ranks"; "" for a curve without a baseline.
[[nodiscard]] std::string baseline_name(const Curve& curve);

/// Returns the baseline of the curve's efficiencies; null if there is none.
[[nodiscard]] const PointReport* baseline_point(const Curve& curve);

/// True if the baseline has the label few-steps, which makes every efficiency of the curve
/// uncertain.
[[nodiscard]] bool has_unsure_baseline(const Curve& curve);

/// Returns the efficiency of a point with the bounds that follow from those of its speed-up; absent
/// if the speed-up has no bounds.
[[nodiscard]] std::optional<statistics::Located> efficiency_interval(const PointReport& point);

/// Returns the nodes and the ranks per node: "2 x 4" for 4 ranks on each of 2 nodes, "2 x 3-4" for
/// nodes with 3 or 4 ranks, "2" if the ranks per node are not known.
[[nodiscard]] std::string nodes_text(const PointReport& point);

/// Sets the unit of throughput of all points of a curve.
void set_throughput_unit(Curve& curve);

/// Computes the speed-up, efficiency and losses of the points of a curve relative to its baseline,
/// which is the one that `options` names or else the one that baseline_ranks() chooses. The points
/// ascend in ranks.
void set_against_baseline(Curve& curve, const ReportOptions& options);

/// Returns a point's step time and the seconds that each cause adds to it, the input of
/// efficiency::waterfall(). Absent if the point has no throughput, step time or traces.
[[nodiscard]] std::optional<efficiency::StepLoss> step_loss(const PointReport& point);

}  // namespace isoscale::analysis
