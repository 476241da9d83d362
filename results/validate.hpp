// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "results/run_data.hpp"

namespace isoscale::results {

/// Throws base::Error when a point contradicts itself: lists per rank or per step of another
/// length, traces of ops or ranks that do not exist, rows of such ranks or with plays of another
/// width. What passes can be analysed without further
/// checks.
void validate(const PointData& point);
/// Its rows alone.
void validate_rows(const PointData& point);
/// What was seen beside its traces alone.
void validate_observed(const PointData& point);

}  // namespace isoscale::results
