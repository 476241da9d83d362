// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "analysis/merge/join.hpp"
#include "analysis/render/render.hpp"
#include "analysis/report.hpp"

/// The JSON report, and the parts that it is made of. Absent numbers are null.
namespace isoscale::analysis {

/// The JSON report as an object; render_json() is its text.
[[nodiscard]] nlohmann::ordered_json report_json(const Report& report);
/// That of an index alone; render_index_json() is its text.
[[nodiscard]] nlohmann::ordered_json index_report_json(const IndexReport& report);

/// [lower, upper] over `divisor`, or null.
[[nodiscard]] nlohmann::ordered_json interval_json(const std::optional<statistics::Located>& at,
                                                   double divisor = 1);

/// Seconds of each category of the traced step, mean over ranks; null where only a bound is known.
[[nodiscard]] nlohmann::ordered_json breakdown_json(const PointReport& point);
/// Seconds of it that computation hides, or null.
[[nodiscard]] nlohmann::ordered_json hidden_communication_json(const PointReport& point);

/// Adds `pop`, `waterfall` and `serial_fraction`: what a point lost against its curve's baseline.
void add_losses_json(const PointReport& point, nlohmann::ordered_json& object);

/// Adds what is derived from traces and from the curve to a point's object; null where it is not
/// known.
void add_causes_json(const PointReport& point, nlohmann::ordered_json& object);

/// amdahl, gustafson and usl of a curve.
[[nodiscard]] nlohmann::ordered_json laws_json(const Laws& laws);

/// Gives all of a point but what add_causes_json adds, and the rows of inference.
[[nodiscard]] nlohmann::ordered_json point_json(const PointReport& point);

/// The top-level curves of the JSON report, one for each experiment over all launches.
[[nodiscard]] nlohmann::ordered_json joined_json(const Joined& joined);

/// {"fewest", "most"}; null where it is not known.
[[nodiscard]] nlohmann::ordered_json ranks_per_node_json(const PointReport& point);
/// {"tp": "intra-node", ...} of the axes of more than one rank; empty where it is not known.
[[nodiscard]] nlohmann::ordered_json axes_json(const PointReport& point);

/// One object for each measured tuple; pairs of ranks are merged.
[[nodiscard]] nlohmann::ordered_json rows_json(const PointReport& point);
/// "slow_pairs", a list.
[[nodiscard]] nlohmann::ordered_json slow_pairs_json(const PointReport& point);
[[nodiscard]] nlohmann::ordered_json link_shares_json(const PointReport& point);
/// Empty where nothing was fitted.
[[nodiscard]] nlohmann::ordered_json calibration_json(const results::CalibrationData& calibration);

}  // namespace isoscale::analysis
