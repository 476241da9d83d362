// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/render/escaped_text_and_tables.hpp"
#include "analysis/report.hpp"

/// Makes table cells and short texts about points and curves for text and Markdown reports; all
/// text is escaped.
namespace isoscale::analysis::render {

/// A part of the breakdown: its name, its glyph in a bar, and its meaning.
struct Category {
  std::string_view name, glyph, meaning;
  double breakdown::Breakdown::*seconds;
};
[[nodiscard]] const std::array<Category, 7>& categories();

/// True if the time of this part of the breakdown is known; false if only a lower bound is known.
[[nodiscard]] bool is_known(const breakdown::BreakdownResult& breakdown,
                            double breakdown::Breakdown::*part);

[[nodiscard]] std::string percent(std::optional<double> ratio);
/// Returns the median step time: "6.54 s", or "6.54 s (1 step)" for a point with the label
/// few-steps; "—" for a point without step times.
[[nodiscard]] std::string step_time(const PointReport& point);
/// Returns the 95% interval of the step time relative to the median: "±0.4%", or both sides,
/// "-31.0% +45.0%", if the wider side is above 1% and more than 1.2 times as wide as the other.
[[nodiscard]] std::string interval(const PointReport& point);
/// Returns the interval of any value in the form of interval(); `undefined` ("—") if there is no
/// interval, or if the value is not above 0.
[[nodiscard]] std::string interval_text(const statistics::Located& at);
/// Returns a time with its interval as a Located, which other functions here take.
[[nodiscard]] inline statistics::Located located(const statistics::Estimate& time) {
  return {.value = time.median, .lower = time.lower, .upper = time.upper};
}
/// These functions return a value with its 95% interval, which follows from the step times of the
/// point and of the baseline. For the baseline itself, they return the value without an interval.
/// The result is absent if the point has no such value, for example without a baseline.
[[nodiscard]] std::optional<statistics::Located> efficiency_of(const PointReport& point);
[[nodiscard]] std::optional<statistics::Located> speedup_of(const PointReport& point);
/// Returns an explanation of the label few-steps; "" if the point does not have the label.
[[nodiscard]] std::string few_steps_text(const PointReport& point);
/// Returns the unit of the throughput of a curve's points; "throughput" if it has none.
[[nodiscard]] std::string throughput_unit(const Curve& curve);
/// Returns a sentence that says by which factor tokens count in the throughput, the `work_growth`
/// of a PointReport; "" if it is 1.
[[nodiscard]] std::string growth_text(double work_growth);
/// Returns the time of one part of `parts` (the breakdown of the step, or of a phase, layer or the
/// like in it) as a share of the whole step. "≥" precedes a share of which only a lower bound is
/// known. "≤" precedes the share of transfer if the wait is not fully known, since transfer then
/// includes some wait. The text is `undefined` if all that is known is a lower bound of 0.
[[nodiscard]] std::string share_text(const breakdown::BreakdownResult& breakdown,
                                     double breakdown::Breakdown::*part,
                                     const breakdown::Breakdown& parts);

/// Returns a point's labels, and "unverified" if its results were not checked or "WRONG" if wrong.
[[nodiscard]] std::string notes(const PointReport& point);
/// Returns the reason why a point has no numbers, such as "skipped: 12 heads do not divide by 8";
/// "" if the point is ok.
[[nodiscard]] std::string excuse(const PointReport& point);

/// Draws the parts of a step as one bar of constant length. Each part gets a whole number of
/// characters by the largest remainder method, so that they add up. Returns "" if no part took
/// time.
[[nodiscard]] std::string breakdown_bar(const breakdown::Breakdown& parts);
/// efficiency_bar() draws an efficiency of up to 120% in eighths of a character, with a mark at the
/// ideal, 100%. A larger efficiency ends in ">". efficiency_heading() draws the scale above such
/// bars.
[[nodiscard]] std::string efficiency_bar(double efficiency);
[[nodiscard]] std::string efficiency_heading();

/// True if some point of the curve is on more than one node; if not, reports leave out the nodes.
[[nodiscard]] bool spans_nodes(const Curve& curve);
/// Returns which mesh axes stay within a node and which cross nodes: "tp intra-node, dp
/// inter-node"; "" if the point is on one node or its nodes are not known.
[[nodiscard]] std::string axes_text(const PointReport& point);
/// Returns a line that names the baseline of the curve's efficiencies, or says that there is none.
[[nodiscard]] Facts baseline_remark(const Curve& curve);
/// Returns the heading of the column of efficiencies, which names the baseline: "vs 1 rank".
[[nodiscard]] std::string efficiency_column(const Curve& curve);

}  // namespace isoscale::analysis::render
