// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/report.hpp"

namespace isoscale::analysis {

/// Adds breakdown_by, waits, clock_error, pop, waterfall, serial_fraction, findings and
/// largest_unexplained to a point's object; null where there is none.
void add_causes_json(const PointReport& point, nlohmann::ordered_json& object);

/// amdahl, gustafson and usl of a curve.
[[nodiscard]] nlohmann::ordered_json laws_json(const Laws& laws);

}  // namespace isoscale::analysis
