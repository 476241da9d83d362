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

/// Table cells and short texts about points and curves, for text and Markdown reports; all text is
/// escaped.
namespace isoscale::analysis::render {

/// A part of the breakdown: its name, its glyph in a bar, and its meaning.
struct Category {
  std::string_view name, glyph, meaning;
  double breakdown::Breakdown::*seconds;
};
[[nodiscard]] const std::array<Category, 7>& categories();

/// True if a part's time is completely known; false if only a lower bound is known.
[[nodiscard]] bool is_known(const breakdown::BreakdownResult& breakdown,
                            double breakdown::Breakdown::*part);

/// Returns "12.1 k": a number with a prefix, without a unit.
[[nodiscard]] std::string count_text(double value);
[[nodiscard]] std::string percent(std::optional<double> ratio);
[[nodiscard]] std::string fixed(std::optional<double> value);  ///< two decimals
/// Returns "6.54 s"; for a point labelled few-steps "6.54 s (1 step)".
[[nodiscard]] std::string step_time(const PointReport& point);
/// Returns "±0.4%"; "-31.0% +45.0%" where the wider side is above 1% and a fifth wider than the
/// other.
[[nodiscard]] std::string interval(const PointReport& point);
[[nodiscard]] std::string interval_text(
    const statistics::Located& at);  ///< the same text for any figure above 0
/// These return the value with the 95% interval that follows from both step times; no interval at
/// the baseline itself. Absent without a baseline.
[[nodiscard]] std::optional<statistics::Located> efficiency_of(const PointReport& point);
[[nodiscard]] std::optional<statistics::Located> speedup_of(const PointReport& point);
/// Explains the label few-steps for a point; "" if the point does not have it.
[[nodiscard]] std::string few_steps_text(const PointReport& point);
[[nodiscard]] std::string throughput(const PointReport& point);  ///< "83.2 k", without the unit
[[nodiscard]] std::string throughput_unit(const Curve& curve);
[[nodiscard]] std::string flops_per_rank(const PointReport& point);  ///< "12.1 G", without the unit
[[nodiscard]] std::string share(const PointReport& point, double breakdown::Breakdown::*part);
/// Returns a part of `parts` (the breakdown of some place) as a share of the whole step. If only a
/// lower bound of the part is known, "≥" precedes it, and "≤" precedes the transfer if the wait is
/// such a part; undefined if nothing is certain.
[[nodiscard]] std::string share_text(const breakdown::BreakdownResult& breakdown,
                                     double breakdown::Breakdown::*part,
                                     const breakdown::Breakdown& parts);

/// Returns the labels, and "unverified" or "WRONG" for a point that is not verified.
[[nodiscard]] std::string notes(const PointReport& point);
/// Returns why a point has no numbers, "skipped: 12 heads do not divide by 8"; "" when it is ok.
[[nodiscard]] std::string excuse(const PointReport& point);

/// Draws the parts of a step as one bar. Cells are rounded by largest remainders, so that their
/// number is constant.
[[nodiscard]] std::string breakdown_bar(const breakdown::Breakdown& parts);
/// These draw an efficiency up to 120%, where 1 is ideal, and the scale above such bars.
[[nodiscard]] std::string efficiency_bar(double efficiency);
[[nodiscard]] std::string efficiency_heading();

/// True if some point of the curve is on more than one node; otherwise reports do not show nodes.
[[nodiscard]] bool spans_nodes(const Curve& curve);
/// Returns "2 x 4" for 4 ranks on each of 2 nodes, "2 x 3-4" where they differ, "2" where the ranks
/// per node are not known.
[[nodiscard]] std::string nodes_cell(const PointReport& point);
/// Returns "tp intra-node, dp inter-node"; "" on one node and where the nodes are not known.
[[nodiscard]] std::string axes_text(const PointReport& point);
/// Says what the curve's efficiency is relative to, unless that is one rank.
[[nodiscard]] Facts baseline_remark(const Curve& curve);
/// Returns "vs 1 rank", the heading of the column of efficiencies.
[[nodiscard]] std::string efficiency_column(const Curve& curve);

}  // namespace isoscale::analysis::render
