// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "analysis/merge/join.hpp"
#include "analysis/render/render.hpp"
#include "analysis/report.hpp"

/// Builds the JSON report and its parts. Absent numbers are null.
namespace isoscale::analysis::render {

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

/// Returns [lower, upper], each divided by `divisor`; null without an interval.
[[nodiscard]] nlohmann::ordered_json interval_json(const std::optional<statistics::Located>& at,
                                                   double divisor = 1);

/// Returns the seconds of each category of the traced step, as means over ranks; a category is null
/// if only a bound is known.
[[nodiscard]] nlohmann::ordered_json breakdown_json(const PointReport& point);
/// Returns the seconds of communication that computation hides; null if they are not known.
[[nodiscard]] nlohmann::ordered_json hidden_communication_json(const PointReport& point);

/// Adds `pop`, `waterfall` and `serial_fraction`: the loss of a point relative to its curve's
/// baseline.
void add_losses_json(const PointReport& point, nlohmann::ordered_json& object);

/// Adds to a point's object the values that are derived from traces and from the curve; null where
/// they are not known.
void add_causes_json(const PointReport& point, nlohmann::ordered_json& object);

/// Returns amdahl, gustafson and usl of a curve.
[[nodiscard]] nlohmann::ordered_json laws_json(const efficiency::Laws& laws);

/// Returns a point's object without the keys of add_causes_json and without the rows of inference.
[[nodiscard]] nlohmann::ordered_json point_json(const PointReport& point);

/// Returns the top-level curves of the JSON report, one for each experiment over all launches.
[[nodiscard]] nlohmann::ordered_json joined_json(const merge::Joined& joined);

/// Returns {"fewest", "most"}, the ranks per node; null if they are not known.
[[nodiscard]] nlohmann::ordered_json ranks_per_node_json(const PointReport& point);
/// Returns {"tp": "intra-node", ...} for the mesh axes of more than one rank; empty if the nodes
/// are not known.
[[nodiscard]] nlohmann::ordered_json axes_json(const PointReport& point);

/// Returns one object for each measured row; the rows of a pair of ranks are merged into one
/// object.
[[nodiscard]] nlohmann::ordered_json rows_json(const PointReport& point);
/// Returns the list "slow_pairs".
[[nodiscard]] nlohmann::ordered_json slow_pairs_json(const PointReport& point);
[[nodiscard]] nlohmann::ordered_json link_shares_json(const PointReport& point);
/// Returns the calibration; empty where nothing was fitted.
[[nodiscard]] nlohmann::ordered_json calibration_json(const results::CalibrationData& calibration);

}  // namespace isoscale::analysis::render
