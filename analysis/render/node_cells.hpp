// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "analysis/render/cells.hpp"
#include "analysis/report.hpp"

/// How reports for people name what lies where.
namespace isoscale::analysis {

/// Whether some point of the curve is on more than one node: else there is nothing to show.
[[nodiscard]] bool spans_nodes(const Curve& curve);
/// "2 x 4" for 4 ranks on each of 2 nodes, "2 x 3-4" where they differ, "2" where that is not
/// known.
[[nodiscard]] std::string nodes_cell(const PointReport& point);
/// "tp intra-node, dp inter-node"; "" on one node and where it is not known.
[[nodiscard]] std::string axes_text(const PointReport& point);
/// What the curve's efficiency is against, unless it is one rank.
[[nodiscard]] Facts baseline_remark(const Curve& curve);
/// "vs 1 rank": the heading of the column of efficiencies.
[[nodiscard]] std::string efficiency_column(const Curve& curve);

}  // namespace isoscale::analysis
