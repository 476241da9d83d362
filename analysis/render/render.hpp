// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/catalog/index.hpp"
#include "analysis/merge/join.hpp"
#include "analysis/render/document.hpp"
#include "analysis/report.hpp"

/// Renders reports as text. Renderers never compute numbers, so that all formats agree. For several
/// launches, reports for people show the joined curves and a line on each launch; machine-readable
/// reports contain both in full.
namespace isoscale::analysis::render {

/// Returns the summary on one screen of at most `columns` columns.
[[nodiscard]] std::string render_summary(const merge::Report& report, std::size_t columns);
/// Returns the detailed report for people, with these sections.
[[nodiscard]] std::string render_sections(const merge::Report& report, const Sections& sections);
/// Returns the detailed report with all sections.
[[nodiscard]] std::string render_text(const merge::Report& report);
[[nodiscard]] std::string render_json(const merge::Report& report);
[[nodiscard]] std::string render_csv(const merge::Report& report);
[[nodiscard]] std::string render_markdown(const merge::Report& report);
/// Returns the rows of collectives in the columns of nccl-tests, for tools that read its output;
/// other lines begin with #.
[[nodiscard]] std::string render_nccl_tests(const merge::Report& report);

/// Returns the name that nccl-tests has for an element type; a type unknown to nccl-tests keeps its
/// name.
[[nodiscard]] std::string nccl_type_name(const std::string& dtype);

/// A report that has only an index of runs. `why` is a sentence for people about what the report
/// does not show.
struct IndexReport {
  catalog::Index index;
  std::vector<std::string> warnings{};
  std::string why{};
};
[[nodiscard]] std::string render_index_text(const IndexReport& report);
[[nodiscard]] std::string render_index_json(const IndexReport& report);
/// Returns one line for each run and experiment.
[[nodiscard]] std::string render_index_csv(const IndexReport& report);
[[nodiscard]] std::string render_index_markdown(const IndexReport& report);

// The following are the JSON report and its parts. Absent numbers are null.

/// The version of the report's format, which is independent of the version of run files. New keys
/// raise the minor version; a change of meaning raises the major version.
inline constexpr std::string_view report_schema_version = "1.4";

/// Returns the JSON report as an object; render_json() is its text.
[[nodiscard]] nlohmann::ordered_json report_json(const merge::Report& report);
/// Returns the JSON of an index alone; render_index_json() is its text.
[[nodiscard]] nlohmann::ordered_json index_report_json(const IndexReport& report);

/// Returns index[], machines[] and unreadable[] of a report.
[[nodiscard]] nlohmann::ordered_json index_json(const catalog::Index& index);

/// Returns the baseline of a curve's efficiencies: the keys whose names begin with "baseline".
[[nodiscard]] nlohmann::ordered_json baseline_json(const Curve& curve);

/// Returns amdahl, gustafson and usl of a curve.
[[nodiscard]] nlohmann::ordered_json laws_json(const efficiency::Laws& laws);

/// Returns the top-level curves of the JSON report, one for each experiment over all launches.
[[nodiscard]] nlohmann::ordered_json joined_json(const merge::Joined& joined);

/// Returns one object for each measured row; the rows of a pair of ranks are merged into one
/// object.
[[nodiscard]] nlohmann::ordered_json rows_json(const PointReport& point);
/// Returns the list "slow_pairs".
[[nodiscard]] nlohmann::ordered_json slow_pairs_json(const PointReport& point);
/// Returns the calibration; empty where nothing was fitted.
[[nodiscard]] nlohmann::ordered_json calibration_json(const results::CalibrationData& calibration);

}  // namespace isoscale::analysis::render
