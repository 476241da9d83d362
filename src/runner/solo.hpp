// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <vector>

#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "program/program.hpp"
#include "results/run_data.hpp"
#include "units/quantity.hpp"

/// What ops take when nothing communicates.
namespace isoscale::runner {

/// How often the step without communication is played; the first play warms up.
[[nodiscard]] int solo_plays(units::Seconds step, units::Seconds max_time);

/// Collective over `active`: all play the section `solo` of `program`, which add_solo_step has
/// appended, `plays` times side by side. Per op of its first step the median duration of the plays
/// but the first; 0 for communication.
[[nodiscard]] std::vector<units::Nanoseconds> measure_solo(executor::Session& session,
                                                           const program::RankProgram& program,
                                                           program::Section solo,
                                                           const comm::Communicator& active,
                                                           int plays);

/// Collective over the point: the solo times of its ranks `traced`, ascending, into `data` on rank
/// 0.
void collect_solo(const comm::Communicator& point, const std::vector<units::Nanoseconds>& mine,
                  std::span<const int> traced, results::PointData& data);

}  // namespace isoscale::runner
