// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "analysis/render/document.hpp"
#include "analysis/report.hpp"

/// Describes the figures of points, once for all reports.
namespace isoscale::analysis::render {

/// Returns the metrics of a point: what its JSON object has, in this order, and what only people
/// read. A metric that everybody reads is in all formats of reports and comparisons without being
/// named anywhere else.
[[nodiscard]] Metrics<PointReport> point_metrics();

/// Returns the metrics of the POP efficiencies; their headings are the names in a tree.
[[nodiscard]] Metrics<efficiency::Pop> pop_metrics();

}  // namespace isoscale::analysis::render
