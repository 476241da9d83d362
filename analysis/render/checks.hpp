// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analysis/render/cells.hpp"
#include "results/run_data.hpp"

/// What preflight said, for people and for programs.
namespace isoscale::analysis {

/// "20 ok, 10 not checked, 1 warning, 1 stop"; what there is none of is left out.
[[nodiscard]] std::string count_checks(const results::PreflightData& preflight);

/// Everything that was looked at, worst first, then what was not, by why; for a terminal.
[[nodiscard]] std::string render_checks_text(const results::PreflightData& preflight);

/// The count, and each warning and stop in a sentence.
[[nodiscard]] Facts check_facts(const results::PreflightData& preflight);

/// An object with results[] (name, verdict, host, device, what, cost, fix, allowed; null where
/// there is none) and facts.
[[nodiscard]] nlohmann::ordered_json checks_json(const results::PreflightData& preflight);
/// The same as a document.
[[nodiscard]] std::string render_checks_json(const results::PreflightData& preflight);

}  // namespace isoscale::analysis
