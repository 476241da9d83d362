// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "program/session_options.hpp"
#include "workloads/workload.hpp"

/// How fast each rank is, for a workload that deals work out by it.
namespace isoscale::runner {

/// Whether a request wants Request::speed_of_rank: partition=proportional with replicas to deal to.
[[nodiscard]] bool deals_by_speed(const workloads::Request& request);

/// The multiplication of most FLOP in the step of any rank, as a program of its own that all ranks
/// play. Throws base::Error for a workload that multiplies nothing.
[[nodiscard]] program::ProgramSet largest_multiplication(const program::ProgramSet& set);

/// Collective over the point: all ranks play `set` at the same time; FLOP/s of each, from the
/// median of several plays. `faults` slow this rank as they will in the point.
[[nodiscard]] std::vector<double> measure_speeds(const program::ProgramSet& set,
                                                 executor::Executor& executor,
                                                 const comm::Communicator& point,
                                                 const program::Faults& faults);

}  // namespace isoscale::runner
