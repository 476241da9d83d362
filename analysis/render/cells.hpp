// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/render/sections.hpp"
#include "analysis/report.hpp"

/// What the reports for people say, piece by piece; all text is escaped. Text and markdown only
/// arrange it.
namespace isoscale::analysis {

inline constexpr std::string_view undefined = "—";

/// A part of the breakdown: its name, how a bar draws it, and what it means.
struct Category {
  std::string_view name, glyph, meaning;
  double Breakdown::*seconds;
};
[[nodiscard]] const std::array<Category, 7>& categories();

/// Whether a part is all that there was, and not only what is certain.
[[nodiscard]] bool is_known(const BreakdownResult& breakdown, double Breakdown::*part);

[[nodiscard]] std::string percent(std::optional<double> ratio);
[[nodiscard]] std::string fixed(std::optional<double> value);  ///< two decimals
/// "6.54 s"; of a point labelled few-steps "6.54 s (1 step)".
[[nodiscard]] std::string step_time(const PointReport& point);
/// "±0.4%"; "-31.0% +45.0%" where the wider side is above 1% and a fifth wider.
[[nodiscard]] std::string interval(const PointReport& point);
[[nodiscard]] std::string interval_text(const Located& at);  ///< likewise of any figure above 0
/// With the 95% interval that both step times give; without one at the baseline itself. Absent
/// without a baseline.
[[nodiscard]] std::optional<Located> efficiency_of(const PointReport& point);
[[nodiscard]] std::optional<Located> speedup_of(const PointReport& point);
/// What the label few-steps means for a point; "" without it.
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

/// Lines below a curve, each a key and a sentence: what stands behind its labels and gaps.
using Facts = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] Facts remarks(const Curve& curve);
/// All there is to say of a curve without any other point: why each was skipped. Else empty.
[[nodiscard]] Facts all_skipped(const Curve& curve);
/// What ran, where, and with what.
[[nodiscard]] std::string headline(const RunReport& report);
[[nodiscard]] Facts header(const RunReport& report, const Sections& sections = {});
/// "8 ranks on 1 node (node17): AMD EPYC 7763, 64 cores, 256 GiB".
[[nodiscard]] std::string machine_text(const results::RunData& run);

}  // namespace isoscale::analysis
