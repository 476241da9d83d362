// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/advice/findings.hpp"

/// Findings in reports: cells for text and Markdown, and JSON.
namespace isoscale::analysis {

inline constexpr std::size_t most_findings = 8;  ///< limit of a report for people

/// Returns "~22%", "<1%", "—": the share of a step that a finding may cost.
[[nodiscard]] std::string share_text(const Finding& finding);
/// Returns the indices of the `most` findings to show, ascending: the first ones, but always the
/// worst of each rule about hardware.
[[nodiscard]] std::vector<std::size_t> shown_findings(std::span<const Finding> findings,
                                                      std::size_t most);

/// The cells of a finding; all text is escaped.
struct FindingCells {
  std::string share;     ///< "~22%", "—"
  std::string sentence;  ///< the problem, with the rank counts
  std::string evidence;  ///< curve and numbers of the most severe point
  std::string next_step;
  std::string rule, source;
};
/// Returns the cells of shown_findings(), in order.
[[nodiscard]] std::vector<FindingCells> finding_cells(std::span<const Finding> findings,
                                                      std::size_t most = most_findings);

/// The lines above and below the findings; the line below says how many are left out.
inline constexpr std::string_view findings_heading =
    "findings, most severe first, with the share of a step that each may cost";
[[nodiscard]] std::string findings_footer(std::size_t count, std::size_t most = most_findings);

/// Returns "4 ranks of dp, tp (oversubscribed)": the points that were not judged and why; "" if
/// there are none. Not escaped.
[[nodiscard]] std::string left_out_text(std::span<const NotJudged> left_out);

/// Returns the block of a text report, at most 118 columns wide; "" if there are neither findings
/// nor points left out.
[[nodiscard]] std::string findings_text(std::span<const Finding> findings,
                                        std::size_t most = most_findings,
                                        std::span<const NotJudged> left_out = {});

/// Returns one object for each entry of `left_out`: curve, ranks[], why.
[[nodiscard]] nlohmann::ordered_json left_out_json(std::span<const NotJudged> left_out);

/// Returns one object for each finding: rule, concern, severity, size, curve, ranks[], sentence,
/// evidence[] (ranks, what, value, unit, text), next_step, source; null where a value is absent.
[[nodiscard]] nlohmann::ordered_json findings_json(std::span<const Finding> findings);

}  // namespace isoscale::analysis
