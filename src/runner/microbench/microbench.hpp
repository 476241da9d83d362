// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "results/records/run_data.hpp"
#include "runner/measure/point.hpp"
#include "runner/plan/plan.hpp"

namespace isoscale::runner::microbench {

/// Collective over `ranks.active`: measures and checks a micro-benchmark, one batch after another.
/// Fills `data` on rank 0 of the point, and its status on all ranks of `active`.
void run_bench(const plan::PlannedPoint& point, const measure::PointContext& context,
               const measure::PointRanks& ranks, results::PointData& data);

}  // namespace isoscale::runner::microbench
