// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/render/text.hpp"
#include "analysis/report.hpp"

/// Cells of tables and short texts about points and curves, as text and markdown reports show them;
/// all text is escaped.
namespace isoscale::analysis {

/// A part of the breakdown: its name, how a bar draws it, and what it means.
struct Category {
  std::string_view name, glyph, meaning;
  double Breakdown::*seconds;
};
[[nodiscard]] const std::array<Category, 7>& categories();

/// True if a part is all that there was, and not only what is certain.
[[nodiscard]] bool is_known(const BreakdownResult& breakdown, double Breakdown::*part);

/// "12.1 k": a number with a prefix, without a unit.
[[nodiscard]] std::string count_text(double value);
[[nodiscard]] std::string percent(std::optional<double> ratio);
[[nodiscard]] std::string fixed(std::optional<double> value);  ///< two decimals
/// "6.54 s"; of a point labelled few-steps "6.54 s (1 step)".
[[nodiscard]] std::string step_time(const PointReport& point);
/// "±0.4%"; "-31.0% +45.0%" where the wider side is above 1% and a fifth wider.
[[nodiscard]] std::string interval(const PointReport& point);
[[nodiscard]] std::string interval_text(
    const statistics::Located& at);  ///< the same of any figure above 0
/// Give the 95% interval that both step times give; none at the baseline itself. Absent without a
/// baseline.
[[nodiscard]] std::optional<statistics::Located> efficiency_of(const PointReport& point);
[[nodiscard]] std::optional<statistics::Located> speedup_of(const PointReport& point);
/// Says what the label few-steps means for a point; "" without it.
[[nodiscard]] std::string few_steps_text(const PointReport& point);
[[nodiscard]] std::string throughput(const PointReport& point);  ///< "83.2 k", without the unit
[[nodiscard]] std::string throughput_unit(const Curve& curve);
[[nodiscard]] std::string flops_per_rank(const PointReport& point);  ///< "12.1 G", without the unit
[[nodiscard]] std::string share(const PointReport& point, double Breakdown::*part);
/// A part of `parts`, which are of some place, as a share of the whole step; of what is not all
/// known, "≥" what is certain (of transfer "≤"), or undefined.
[[nodiscard]] std::string share_text(const BreakdownResult& breakdown, double Breakdown::*part,
                                     const Breakdown& parts);

/// Labels, and whether the point was verified where that is not as it should be.
[[nodiscard]] std::string notes(const PointReport& point);
/// Why a point has no numbers, "skipped: 12 heads do not divide by 8"; "" when it is ok.
[[nodiscard]] std::string excuse(const PointReport& point);

/// The parts of a step as one bar; cells go to the largest remainders, so that they sum to it.
[[nodiscard]] std::string breakdown_bar(const Breakdown& parts);
/// An efficiency, 1 being ideal; up to 120% is drawn. And the scale above such bars.
[[nodiscard]] std::string efficiency_bar(double efficiency);
[[nodiscard]] std::string efficiency_heading();

/// True if some point of the curve is on more than one node: else there is nothing to show.
[[nodiscard]] bool spans_nodes(const Curve& curve);
/// "2 x 4" for 4 ranks on each of 2 nodes, "2 x 3-4" where they differ, "2" where that is not
/// known.
[[nodiscard]] std::string nodes_cell(const PointReport& point);
/// "tp intra-node, dp inter-node"; "" on one node and where it is not known.
[[nodiscard]] std::string axes_text(const PointReport& point);
/// Says what the curve's efficiency is against, unless it is one rank.
[[nodiscard]] Facts baseline_remark(const Curve& curve);
/// "vs 1 rank": the heading of the column of efficiencies.
[[nodiscard]] std::string efficiency_column(const Curve& curve);

}  // namespace isoscale::analysis
