// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/clock_offset.hpp"
#include "config/injection.hpp"
#include "program/session_options.hpp"
#include "runner/plan/plan.hpp"

/// The effects of injected faults on one rank of one point; pure functions.
namespace isoscale::runner {

/// Throws base::UsageError for an injection that names a rank beyond the launch's `ranks` ranks.
void require_ranks(std::span<const config::Injection> injections, int ranks);

/// True if an injection changes anything in a point with the programs `set`, or some of them. A
/// slow rank changes its GEMMs, a delay those of all ranks, a slow link the communication between
/// its two ends, and jitter every op that computes. A clock error touches every point that its rank
/// plays in, except micro-benchmarks, which compare no times of different ranks.
[[nodiscard]] bool touches(const config::Injection& injection, const PlannedPoint& point,
                           const program::ProgramSet& set);

/// Returns the injections that touch no point that is measured.
[[nodiscard]] std::vector<std::string> idle_injections(
    std::span<const config::Injection> injections, const Plan& plan);

/// Returns the faults of a rank of the launch in a point whose ranks are `world_ranks`; none if the
/// rank is not among them and plays a copy. Each rank of the launch has its own random numbers,
/// derived from the seed.
[[nodiscard]] program::Faults faults_of(std::span<const config::Injection> injections,
                                        std::span<const int> world_ranks, int world_rank,
                                        std::uint64_t seed);

/// Returns the rank of the point whose bits are flipped during its soak; absent if there is none.
[[nodiscard]] std::optional<int> flipping_rank(std::span<const config::Injection> injections,
                                               std::span<const int> world_ranks);

/// Returns the error of the clock of a rank of the launch; absent if there is none.
[[nodiscard]] std::optional<comm::ClockFault> clock_fault_of(
    std::span<const config::Injection> injections, int world_rank);

}  // namespace isoscale::runner
