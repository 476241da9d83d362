// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "comm/clock_offset.hpp"
#include "results/run_data.hpp"
#include "runner/measure.hpp"

namespace isoscale::runner {

/// Collective over the point: what one of its sessions took and decided, into `data` on rank 0.
/// Communicators and choices are added to those of earlier sessions.
void collect_session(const comm::Communicator& point, const executor::SessionFacts& session,
                     results::PointData& data);

/// Collective over the point: what its sessions took, every rank's step times, and the spans of its
/// ranks `traced`, ascending, on the clock of its rank 0, into `data` on rank 0. `clock` tells how
/// this rank's clock, which the record's traces were taken on, ran against it.
void collect(const comm::Communicator& point, const Record& record, const comm::ClockFit& clock,
             const executor::SessionFacts& session, std::span<const int> traced,
             results::PointData& data);

/// Collective over the point: adds the choices of all ranks to `data` on rank 0, each shape once:
/// the ranks have agreed on its algorithm.
void collect_gemm_choices(const comm::Communicator& point,
                          const std::vector<executor::GemmChoice>& mine, results::PointData& data);

}  // namespace isoscale::runner
