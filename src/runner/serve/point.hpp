// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "runner/bench_point.hpp"

namespace isoscale::runner {

/// Collective over `place.active`: answers requests on the point's replicas at one rate, or at
/// those that a search for the highest tries, and fills `data` on rank 0 of the point, its status
/// on all. Of what is measured, rows are left: one a rate, one a rate and replica, and one for each
/// request of the rate that the point was about: the given one, or the highest that was sustained.
/// The point fails unless every request was answered exactly once.
void run_serve(const PlannedPoint& point, const PointContext& context, const BenchPlace& place,
               results::PointData& data);

}  // namespace isoscale::runner
