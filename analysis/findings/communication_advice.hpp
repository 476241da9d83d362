// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "analysis/report.hpp"
#include "mesh/mesh.hpp"

namespace isoscale::analysis {

/// What to try against transfers along `axis` that nothing hides, by what travels there
/// (docs/strategies/): at most three clauses, each an option that the point's workload has and does
/// not use yet, or another mesh. Never empty.
[[nodiscard]] std::string advice_along(const PointReport& point, mesh::Axis axis);

}  // namespace isoscale::analysis
