// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/report.hpp"

namespace isoscale::analysis {

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

}  // namespace isoscale::analysis
