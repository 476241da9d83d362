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

/// Findings as reports show them: cells that text and markdown arrange, and JSON.
namespace isoscale::analysis {

inline constexpr std::size_t most_findings = 8;  ///< that a report for people shows

/// "~22%", "<1%", "—": the share of a step that it may cost.
[[nodiscard]] std::string share_text(const Finding& finding);
/// Indices of `most` to show, ascending: the first, but of each rule about hardware the worst is
/// never hidden.
[[nodiscard]] std::vector<std::size_t> shown_findings(std::span<const Finding> findings,
                                                      std::size_t most);

/// All escaped.
struct FindingCells {
  std::string share;     ///< "~22%", "—"
  std::string sentence;  ///< what, with the rank counts
  std::string evidence;  ///< curve and numbers, of the most severe point
  std::string next_step;
  std::string rule, source;
};
/// `most` at most, in their order: the most severe, and of each fault of hardware the worst.
[[nodiscard]] std::vector<FindingCells> finding_cells(std::span<const Finding> findings,
                                                      std::size_t most = most_findings);

/// The lines above and below them; the latter says how many are left out.
inline constexpr std::string_view findings_heading =
    "findings, most severe first, with the share of a step that each may cost";
[[nodiscard]] std::string findings_footer(std::size_t count, std::size_t most = most_findings);

/// "4 ranks of dp, tp (oversubscribed)": which points were not judged and why; "" without any. Not
/// escaped.
[[nodiscard]] std::string left_out_text(std::span<const NotJudged> left_out);

/// The block of a text report, at most 118 columns wide; "" without findings and points left out.
[[nodiscard]] std::string findings_text(std::span<const Finding> findings,
                                        std::size_t most = most_findings,
                                        std::span<const NotJudged> left_out = {});

/// One object for each: curve, ranks[], why.
[[nodiscard]] nlohmann::ordered_json left_out_json(std::span<const NotJudged> left_out);

/// One object for each: rule, concern, severity, size, curve, ranks[], sentence, evidence[] (ranks,
/// what, value, unit, text), next_step, source; null where there is none.
[[nodiscard]] nlohmann::ordered_json findings_json(std::span<const Finding> findings);

}  // namespace isoscale::analysis
