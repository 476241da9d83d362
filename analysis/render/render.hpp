// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/catalog/run_index.hpp"
#include "analysis/merge/join_launches.hpp"
#include "analysis/render/detail_selection.hpp"
#include "analysis/report.hpp"

/// Renders reports as text. Renderers never compute results, so that all formats agree. If a report
/// has several launches, its formats for people show the joined curves and a line on each launch,
/// and its machine-readable formats contain both in full.
namespace isoscale::analysis::render {

/// Returns the summary, which fits on one screen, with lines of at most `columns` characters.
[[nodiscard]] std::string render_summary(const merge::Report& report, std::size_t columns);
/// Returns the detailed report for people, with the given sections.
[[nodiscard]] std::string render_sections(const merge::Report& report, const Sections& sections);
/// Returns the detailed report with all sections.
[[nodiscard]] std::string render_text(const merge::Report& report);
[[nodiscard]] std::string render_json(const merge::Report& report);
[[nodiscard]] std::string render_csv(const merge::Report& report);
[[nodiscard]] std::string render_markdown(const merge::Report& report);
/// Returns the measured collectives in the column format of nccl-tests, for tools that read its
/// output; all other lines begin with #.
[[nodiscard]] std::string render_nccl_tests(const merge::Report& report);

/// Returns the name that nccl-tests has for an element type; a type unknown to it keeps its name.
[[nodiscard]] std::string nccl_type_name(const std::string& dtype);

/// A report that consists of an index of runs only. `why` is a sentence that tells people what the
/// report does not show, and the reason.
struct IndexReport {
  catalog::Index index;
  std::vector<std::string> warnings{};
  std::string why{};
};
[[nodiscard]] std::string render_index_text(const IndexReport& report);
[[nodiscard]] std::string render_index_json(const IndexReport& report);
/// Returns one line for each experiment of each run, and one for each run without experiments.
[[nodiscard]] std::string render_index_csv(const IndexReport& report);
[[nodiscard]] std::string render_index_markdown(const IndexReport& report);

// The following declare the JSON report and its parts. Absent numbers are null.

/// The version of the report's format, which is independent of the version of run files. New keys
/// raise the minor version; a change of meaning raises the major version.
inline constexpr std::string_view report_schema_version = "1.4";

/// Returns the JSON report as an object; render_json() is its text.
[[nodiscard]] nlohmann::ordered_json report_json(const merge::Report& report);
/// Returns the JSON report of an index alone as an object; render_index_json() is its text.
[[nodiscard]] nlohmann::ordered_json index_report_json(const IndexReport& report);

/// Returns an object with the lists `index`, `machines` and `unreadable` of the JSON report.
[[nodiscard]] nlohmann::ordered_json index_json(const catalog::Index& index);

/// Returns one object for each row of a micro-benchmark, except that all rows of a pair of ranks
/// become one object, and so do those of an overlap of a GEMM with a collective. Rows of the
/// workload `infer` are left out; add_inferences_json() adds them.
[[nodiscard]] nlohmann::ordered_json rows_json(const PointReport& point);
/// Returns the list `slow_pairs` of a point: the pairs of ranks whose links are slow.
[[nodiscard]] nlohmann::ordered_json slow_pairs_json(const PointReport& point);
/// Returns an object with the calibration; empty if nothing was fitted.
[[nodiscard]] nlohmann::ordered_json calibration_json(const results::CalibrationData& calibration);

}  // namespace isoscale::analysis::render
