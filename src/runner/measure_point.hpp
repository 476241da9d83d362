// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "results/records/run_data.hpp"
#include "runner/measure/point.hpp"
#include "runner/plan/plan.hpp"

namespace isoscale::runner {

/// Collective over the world: verifies and measures one point. Ranks outside the point sleep or
/// play copies of it. The result is complete on world rank 0; on other ranks only its status is
/// right.
[[nodiscard]] results::PointData run_point(const plan::PlannedPoint& point,
                                           const measure::PointContext& context);

}  // namespace isoscale::runner
