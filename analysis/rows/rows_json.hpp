// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/report.hpp"

/// The parts of the JSON report that micro-benchmarks give. Absent numbers are null.
namespace isoscale::analysis {

/// One object for each measured tuple; pairs of ranks are merged.
[[nodiscard]] nlohmann::ordered_json rows_json(const PointReport& point);
/// "slow_pairs", a list.
[[nodiscard]] nlohmann::ordered_json slow_pairs_json(const PointReport& point);
[[nodiscard]] nlohmann::ordered_json link_shares_json(const PointReport& point);
/// Empty where nothing was fitted.
[[nodiscard]] nlohmann::ordered_json calibration_json(const results::CalibrationData& calibration);

}  // namespace isoscale::analysis
