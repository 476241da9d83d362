// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "results/run_data.hpp"
#include "runner/plan.hpp"

namespace isoscale::runner {

/// The row of a point before it is measured, or of one that is skipped.
[[nodiscard]] results::PointData describe_point(const PlannedPoint& point);

}  // namespace isoscale::runner
