// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analysis/render/detail_selection.hpp"
#include "analysis/render/document_and_metrics.hpp"
#include "analysis/report.hpp"
#include "results/records/run_data.hpp"

/// Describes the machine of a run in reports: the nodes of its ranks, hardware and software,
/// preflight checks, and the state of the devices while steps were measured. All text for people is
/// escaped.
namespace isoscale::analysis::render {

/// Returns the headline of a report: "Isoscale 1.0.0, run 3f2a of 2026-11-21T23:36:05Z".
[[nodiscard]] std::string headline(const RunReport& report);
/// Returns the lines below the headline: a note on a partial run, machine, device, MPI, build,
/// command, file, warnings and preflight checks. Warnings and checks are included only if
/// `sections` has them.
[[nodiscard]] Facts header(const RunReport& report, const Sections& sections = {});
/// Returns a note for a run that did not finish: "the run did not finish: it has 2 of its 15
/// points", or only "the run did not finish" if the number of its points is not known.
[[nodiscard]] std::string partial_text(const results::RunData& run);
/// Returns a description of the machine: "8 ranks on 1 node (node17): AMD EPYC 7763, 64 cores, 256
/// GiB", or "...: 2 kinds of node" if nodes differ.
[[nodiscard]] std::string machine_text(const results::RunData& run);

/// Returns the number of preflight checks by result: "20 ok, 10 not checked, 1 warning, 1 stop";
/// counts of 0 are left out.
[[nodiscard]] std::string count_checks(const results::PreflightData& preflight);

/// Returns the text of all preflight checks for a terminal: first the checks that were made, the
/// worst results first, then the checks that were not made, grouped by reason.
[[nodiscard]] std::string render_checks_text(const results::PreflightData& preflight);

/// Returns a line with the counts of preflight checks by result, and a line for each check with the
/// result `warning` or `stop`.
[[nodiscard]] Facts check_facts(const results::PreflightData& preflight);

/// Returns an object with `results`, a list of the checks' results (name, verdict, host, device,
/// what, cost, fix, allowed; null instead of an empty text), and with `facts`, the facts about
/// the job that the checks judged, or null if they are damaged in the file.
[[nodiscard]] nlohmann::ordered_json checks_json(const results::PreflightData& preflight);
/// Returns the text of checks_json().
[[nodiscard]] std::string render_checks_json(const results::PreflightData& preflight);

/// Returns a table with clock, utilisation, temperature, power and energy of the devices at the
/// points of a curve; it has no rows if nothing was sampled.
[[nodiscard]] DocumentTable device_table(const Curve& curve);
/// Returns the lines below device_table(): the first four warnings about devices of each point, the
/// number of the others, and, where energy is not known, the reason.
[[nodiscard]] Facts device_remarks(const Curve& curve);

/// Returns the value of a point's key `device_state` in the JSON report; null if nothing was
/// sampled.
[[nodiscard]] nlohmann::ordered_json device_state_json(const PointReport& point);

}  // namespace isoscale::analysis::render
