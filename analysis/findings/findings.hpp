// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "analysis/findings/finding.hpp"
#include "analysis/launches/join.hpp"
#include "analysis/report.hpp"

namespace isoscale::analysis {

/// What the rules find in one run: on each point of its curves and in the run as a whole. Points of
/// a curve that a rule finds the same of are one finding. Gravest first; those of unknown severity
/// last: faults of hardware, then the others, each by size, then in the order of the rules.
[[nodiscard]] std::vector<Finding> findings_of(const RunReport& run);

/// Of several launches what is found on the joined curves, and in each launch as a whole; of one
/// what is found in it.
[[nodiscard]] std::vector<Finding> findings_of(const Report& report);

/// The points that the rules, or all but those about faults, did not judge.
[[nodiscard]] std::vector<NotJudged> left_out_of(const RunReport& run);
[[nodiscard]] std::vector<NotJudged> left_out_of(const Report& report);

/// curve, ranks[], why.
[[nodiscard]] nlohmann::ordered_json left_out_json(std::span<const NotJudged> left_out);

/// rule, concern, severity, size, curve, ranks[], sentence, evidence[] (ranks, what, value, unit,
/// text), next_step, source; null where there is none.
[[nodiscard]] nlohmann::ordered_json findings_json(std::span<const Finding> findings);

}  // namespace isoscale::analysis
