// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "results/run_data.hpp"
#include "runner/plan/plan.hpp"
#include "runner/plan/point_context.hpp"

namespace isoscale::runner {

/// Collective over the world: verifies and measures one point on its sub-world. Ranks outside it
/// sleep or play replicas. The result is complete on world rank 0; elsewhere only its status is
/// right.
[[nodiscard]] results::PointData run_point(const PlannedPoint& point, const PointContext& context);

}  // namespace isoscale::runner
