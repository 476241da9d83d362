// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "comm/communicator.hpp"
#include "program/program.hpp"
#include "results/run_data.hpp"
#include "runner/measure/measure_steps.hpp"
#include "runner/plan/plan.hpp"
#include "runner/plan/point_context.hpp"

namespace isoscale::runner {

/// The place of this rank in a point that is being measured.
struct BenchPlace {
  const comm::Communicator& sub_world;  ///< ranks of the point, or of this rank's copy of it
  const comm::Communicator& active;     ///< the ranks of the point and of its copies
  program::Faults faults{};             ///< to inject on this rank
  Share share = Share::in_point;
};

/// Collective over `active`: measures and checks a micro-benchmark, one batch after another. Fills
/// `data` on rank 0 of the point, and its status on all ranks of `active`.
void run_bench(const PlannedPoint& point, const PointContext& context, const BenchPlace& place,
               results::PointData& data);

}  // namespace isoscale::runner
