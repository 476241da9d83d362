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

/// Writes the findings of reports: for people, and as JSON.
namespace isoscale::analysis::render {

/// Returns the share of a step that a finding may cost: "~22%", "<1%", or "—" if it is unknown.
[[nodiscard]] std::string share_text(const advice::Finding& finding);
/// Returns the indices of the `most` findings to show, in ascending order. These are the first
/// findings, but the worst finding of each rule about hardware is always among them.
[[nodiscard]] std::vector<std::size_t> shown_findings(std::span<const advice::Finding> findings,
                                                      std::size_t most);

/// Returns the points that the rules did not judge, and the reasons: "4 ranks of dp, tp
/// (oversubscribed)"; "" if there are none. The text is not escaped.
[[nodiscard]] std::string left_out_text(std::span<const advice::NotJudged> left_out);

/// Returns the findings with evidence, next step, rule and source, and the points left out. The
/// document is empty if there are neither findings nor points left out.
[[nodiscard]] Document findings_document(std::span<const advice::Finding> findings,
                                         std::span<const advice::NotJudged> left_out = {});

/// Returns one object for each entry of `left_out`: curve, ranks[], why.
[[nodiscard]] nlohmann::ordered_json left_out_json(std::span<const advice::NotJudged> left_out);

/// Returns one object for each finding: rule, concern, severity, size, curve, ranks[], sentence,
/// evidence[] (ranks, what, value, unit, text), next_step, source; null where a value is absent.
[[nodiscard]] nlohmann::ordered_json findings_json(std::span<const advice::Finding> findings);

}  // namespace isoscale::analysis::render
