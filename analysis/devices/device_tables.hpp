// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "analysis/render/cells.hpp"
#include "analysis/rows/bench_tables.hpp"

/// What reports say of devices; all text for people is escaped.
namespace isoscale::analysis {

/// Clock, temperature, power and energy of a curve's points; none where nothing was sampled.
[[nodiscard]] std::vector<TitledTable> device_tables(const Curve& curve);
/// Lines below: warnings, the first four of a point, and why there is no energy.
[[nodiscard]] Facts device_remarks(const Curve& curve);

/// A point's `device_state`; null where nothing was sampled.
[[nodiscard]] nlohmann::ordered_json device_state_json(const PointReport& point);

}  // namespace isoscale::analysis
