// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/clock.hpp"
#include "config/injection.hpp"
#include "program/faults.hpp"
#include "runner/measure.hpp"
#include "runner/plan.hpp"

/// What injections mean on one rank of one point; pure but for misread().
namespace isoscale::runner {

/// Throws base::UsageError for an injection that names a rank beyond the launch's `ranks`.
void require_ranks(std::span<const config::Injection> injections, int ranks);

/// The texts of the injections that touch the point, in the order given. A clock touches nothing in
/// a micro-benchmark, which compares no times of different ranks.
[[nodiscard]] std::vector<std::string> injections_on(std::span<const config::Injection> injections,
                                                     const PlannedPoint& point);

/// What rank `rank` of a point plays worse, whose ranks are `world_ranks` of the launch. Each rank
/// of the launch draws from the seed on its own.
[[nodiscard]] program::Faults faults_of(std::span<const config::Injection> injections,
                                        std::span<const std::int64_t> world_ranks, int rank,
                                        std::uint64_t seed);

/// How the clock of a rank of the launch is wrong; absent: it is right.
[[nodiscard]] std::optional<comm::ClockFault> clock_fault_of(
    std::span<const config::Injection> injections, int world_rank);

/// Traces as this rank's clock shows them. What was read from it before is corrected here and not
/// where it was read: no read pays for a fault that is not there.
void misread(const comm::ClockSync& clocks, Record& record);

}  // namespace isoscale::runner
