// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "analysis/report.hpp"

namespace isoscale::analysis {

/// Sorts points into curves, names these and sets each point against its curve's baseline.
[[nodiscard]] std::vector<Curve> make_curves(std::vector<PointReport> points,
                                             const ReportOptions& options);

}  // namespace isoscale::analysis
