// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "analysis/merge/join.hpp"
#include "analysis/render/point_metrics.hpp"
#include "analysis/render/render.hpp"
#include "analysis/report.hpp"

/// Builds the JSON report and its parts. Absent numbers are null.
namespace isoscale::analysis::render {

/// The version of the report's format, which is independent of the version of run files. New keys
/// raise the minor version; a change of meaning raises the major version.
inline constexpr std::string_view report_schema_version = "1.4";

/// Returns the JSON report as an object; render_json() is its text.
[[nodiscard]] nlohmann::ordered_json report_json(const merge::Report& report,
                                                 Metrics<PointReport> metrics = point_metrics());
/// Returns the CSV report: a line for each point, and for each row of a micro-benchmark.
[[nodiscard]] std::string csv_report(const merge::Report& report, Metrics<PointReport> metrics);
/// Returns the JSON of an index alone; render_index_json() is its text.
[[nodiscard]] nlohmann::ordered_json index_report_json(const IndexReport& report);

/// Returns index[], machines[] and unreadable[] of a report.
[[nodiscard]] nlohmann::ordered_json index_json(const catalog::Index& index);

/// Returns the baseline of a curve's efficiencies: the keys whose names begin with "baseline".
[[nodiscard]] nlohmann::ordered_json baseline_json(const Curve& curve);

/// Returns amdahl, gustafson and usl of a curve.
[[nodiscard]] nlohmann::ordered_json laws_json(const efficiency::Laws& laws);

/// Returns the top-level curves of the JSON report, one for each experiment over all launches.
[[nodiscard]] nlohmann::ordered_json joined_json(const merge::Joined& joined,
                                                 Metrics<PointReport> metrics);

/// Returns one object for each measured row; the rows of a pair of ranks are merged into one
/// object.
[[nodiscard]] nlohmann::ordered_json rows_json(const PointReport& point);
/// Returns the list "slow_pairs".
[[nodiscard]] nlohmann::ordered_json slow_pairs_json(const PointReport& point);
/// Returns the calibration; empty where nothing was fitted.
[[nodiscard]] nlohmann::ordered_json calibration_json(const results::CalibrationData& calibration);

}  // namespace isoscale::analysis::render
