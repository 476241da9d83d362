// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/report.hpp"

namespace isoscale::analysis {

/// Adds what is derived from traces and from the curve to a point's object; null where it is not
/// known.
void add_causes_json(const PointReport& point, nlohmann::ordered_json& object);

/// amdahl, gustafson and usl of a curve.
[[nodiscard]] nlohmann::ordered_json laws_json(const Laws& laws);

}  // namespace isoscale::analysis
