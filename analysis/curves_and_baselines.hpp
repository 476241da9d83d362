// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/experiment_and_machine_identity.hpp"
#include "analysis/report.hpp"

/// Sorts points into curves, names the curves, and compares their points with a baseline.
namespace isoscale::analysis {

/// Sorts points into named curves and compares each with the baseline of its curve.
[[nodiscard]] std::vector<Curve> make_curves(std::vector<PointReport> points,
                                             const ReportOptions& options);

/// Chooses the point that represents several points in a report. Points without labels come first,
/// then points whose labels still allow them as scaling results, then others that are ok; of
/// equally good points, the one with the most ranks. Null if no point is ok.
[[nodiscard]] const PointReport* telling_point(const std::vector<const PointReport*>& points);
/// Chooses the point that represents a curve in the same way from the points with a throughput; the
/// baseline, which does not show how the curve scales, comes last. Null without such points.
[[nodiscard]] const PointReport* telling_point(const Curve& curve);

/// Makes names unique: appends texts[i], unless empty, to names[i] if another entry with the same
/// base has a different text that is not empty.
void tell_apart(std::vector<std::string>& names, const std::vector<std::string>& bases,
                const std::vector<std::string>& texts);
/// Appends to names[i] the text that `text_of` returns for the telling_point() of curve i, if
/// another curve with the same base has a different text at a rank count that both have.
void tell_apart(std::vector<std::string>& names, const std::vector<std::string>& bases,
                std::span<const Curve* const> curves,
                const std::function<std::string(const PointReport&)>& text_of);
/// Appends the meshes to equal names of curves, or the microbatches if the meshes are equal too.
void tell_meshes_apart(std::vector<std::string>& names, std::span<const Curve* const> curves);
/// Appends "repeat 2" to the second of equal names, "repeat 3" to the third, and so on.
void tell_repeats_apart(std::vector<std::string>& names);

/// Returns the point of a curve with this rank count (not owned); null if there is none.
[[nodiscard]] const PointReport* point_of(const Curve& curve, int ranks);

/// Returns the experiment that the points (at least one) of a curve have in common.
[[nodiscard]] Experiment experiment_of(const Curve& curve);

/// A rank count that may become the baseline of a curve.
struct BaselineCandidate {
  int ranks = 0;
  /// True if a point with `ranks` ranks has the label oversubscribed or shared-gpu.
  bool shares_hardware = false;
};

/// Chooses the baseline for reports, joined launches, comparisons and predictions: the smallest
/// rank count whose ranks do not share cores or GPUs, or the smallest of all if there is none. The
/// candidates ascend in ranks; absent if there are none.
[[nodiscard]] std::optional<int> baseline_ranks(std::span<const BaselineCandidate> candidates);

/// Returns "1 rank", "4 ranks", "1 node of 8 ranks"; "" for a curve without a baseline.
[[nodiscard]] std::string baseline_name(const Curve& curve);

/// Returns the baseline of the curve's efficiencies; null if there is none.
[[nodiscard]] const PointReport* baseline_point(const Curve& curve);

/// True if the baseline has the label few-steps (too few steps were measured), which makes all
/// efficiencies uncertain.
[[nodiscard]] bool has_unsure_baseline(const Curve& curve);

/// Returns a point's efficiency with its interval; absent if the speed-up has no interval.
[[nodiscard]] std::optional<statistics::Located> efficiency_interval(const PointReport& point);

/// Returns the nodes and the ranks per node: "2 x 4" for 4 ranks on each of 2 nodes, "2 x 3-4" for
/// nodes with 3 or 4 ranks, "2" if the ranks per node are not known.
[[nodiscard]] std::string nodes_text(const PointReport& point);

void set_throughput_unit(Curve& curve);

/// Computes the speed-up, efficiency and losses of the points of a curve, which ascend in ranks,
/// relative to the baseline that `options` names or else baseline_ranks() chooses.
void set_against_baseline(Curve& curve, const ReportOptions& options);

/// Returns the input of efficiency::waterfall(); absent without throughput, step time or traces.
[[nodiscard]] std::optional<efficiency::StepLoss> step_loss(const PointReport& point);

}  // namespace isoscale::analysis
