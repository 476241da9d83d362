// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "comm/communicator.hpp"
#include "program/session_options.hpp"
#include "results/run_data.hpp"
#include "runner/measure/measure_steps.hpp"
#include "runner/plan/plan.hpp"
#include "runner/plan/point_context.hpp"

namespace isoscale::runner {

/// The part of one rank in a point that is being measured.
struct BenchPlace {
  const comm::Communicator& sub_world;  ///< the point, or the copy of it that this rank plays in
  const comm::Communicator& active;     ///< all that play
  program::Faults faults{};             ///< of this rank
  Share share = Share::in_point;
};

/// Collective over `active`: measures and checks a micro-benchmark, batch after batch. Fills `data`
/// on rank 0 of the point, and its status on all.
void run_bench(const PlannedPoint& point, const PointContext& context, const BenchPlace& place,
               results::PointData& data);

}  // namespace isoscale::runner
