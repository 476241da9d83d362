// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "analysis/advice/findings.hpp"
#include "analysis/render/document.hpp"

/// Findings in reports: for people, and as JSON.
namespace isoscale::analysis::render {

/// Returns "~22%", "<1%", "—": the share of a step that a finding may cost.
[[nodiscard]] std::string share_text(const advice::Finding& finding);
/// Returns the indices of the `most` findings to show, ascending: the first ones, but always the
/// worst of each rule about hardware.
[[nodiscard]] std::vector<std::size_t> shown_findings(std::span<const advice::Finding> findings,
                                                      std::size_t most);

/// Returns "4 ranks of dp, tp (oversubscribed)": the points that were not judged and why; "" if
/// there are none. Not escaped.
[[nodiscard]] std::string left_out_text(std::span<const advice::NotJudged> left_out);

/// Returns the findings with evidence, next step, rule and source, and the points left out; nothing
/// if there are neither findings nor points left out.
[[nodiscard]] Document findings_document(std::span<const advice::Finding> findings,
                                         std::span<const advice::NotJudged> left_out = {});

/// Returns one object for each entry of `left_out`: curve, ranks[], why.
[[nodiscard]] nlohmann::ordered_json left_out_json(std::span<const advice::NotJudged> left_out);

/// Returns one object for each finding: rule, concern, severity, size, curve, ranks[], sentence,
/// evidence[] (ranks, what, value, unit, text), next_step, source; null where a value is absent.
[[nodiscard]] nlohmann::ordered_json findings_json(std::span<const advice::Finding> findings);

}  // namespace isoscale::analysis::render
