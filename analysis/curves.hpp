// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "analysis/launches/experiment.hpp"
#include "analysis/report.hpp"

namespace isoscale::analysis {

/// Sorts points into curves, names these and sets each point against its curve's baseline.
[[nodiscard]] std::vector<Curve> make_curves(std::vector<PointReport> points,
                                             const ReportOptions& options);

/// What the points of a curve have in common. The curve has one.
[[nodiscard]] Experiment experiment_of(const Curve& curve);

/// Gives the points of a curve, ascending in ranks, what they are against its baseline. A point
/// labelled few-steps is none where one of more steps, or of more ranks, can be.
void set_against_baseline(Curve& curve, const ReportOptions& options);

}  // namespace isoscale::analysis
