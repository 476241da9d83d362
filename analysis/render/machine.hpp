// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "analysis/render/document.hpp"
#include "analysis/render/text_table.hpp"
#include "analysis/report.hpp"
#include "results/run_data.hpp"

/// The machine of a run as reports show it: what ran where and with what, preflight checks, and the
/// devices beside the loop. All text for people is escaped.
namespace isoscale::analysis {

/// Say what ran, where, and with what.
[[nodiscard]] std::string headline(const RunReport& report);
[[nodiscard]] Facts header(const RunReport& report, const Sections& sections = {});
/// "8 ranks on 1 node (node17): AMD EPYC 7763, 64 cores, 256 GiB".
[[nodiscard]] std::string machine_text(const results::RunData& run);

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

/// Clock, temperature, power and energy of a curve's points; none where nothing was sampled.
[[nodiscard]] std::vector<TitledTable> device_tables(const Curve& curve);
/// Lines below them: warnings, the first four of a point, and why there is no energy.
[[nodiscard]] Facts device_remarks(const Curve& curve);

/// A point's `device_state`; null where nothing was sampled.
[[nodiscard]] nlohmann::ordered_json device_state_json(const PointReport& point);

}  // namespace isoscale::analysis
