// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/clock_offset.hpp"
#include "program/program.hpp"
#include "runner/plan/plan.hpp"
#include "settings/injection.hpp"

/// Determines which injected faults (--inject) one rank has in one point. All functions are pure.
namespace isoscale::runner::plan {

/// Throws base::UsageError if an injection names a rank that a launch of `ranks` ranks lacks.
void require_ranks(std::span<const settings::Injection> injections, int ranks);

/// True if an injection changes anything in a point. `set` has the programs of the point or, for a
/// micro-benchmark, those of one of its sessions. A slow or stuck rank affects the rank's GEMMs, a
/// delay the GEMMs of all ranks, a slow link the communication between its two ranks, and jitter
/// all compute ops. A clock error and flipped bits are injected only into training steps. So they
/// affect all points with such steps in which their rank plays, but neither micro-benchmarks nor
/// points that serve requests.
[[nodiscard]] bool touches(const settings::Injection& injection, const PlannedPoint& point,
                           const program::ProgramSet& set);

/// Returns the texts of the injections that affect none of the points to measure.
[[nodiscard]] std::vector<std::string> idle_injections(
    std::span<const settings::Injection> injections, const Plan& plan);

/// Returns the faults of the rank `world_rank` of the launch in a point whose ranks are
/// `world_ranks`. A rank that is not among these has no faults, even if it plays a copy of the
/// point. Each rank of the launch has its own random numbers, which are derived from `seed`.
[[nodiscard]] program::Faults faults_of(std::span<const settings::Injection> injections,
                                        std::span<const int> world_ranks, int world_rank,
                                        std::uint64_t seed);

/// Returns the ranks of the point on which the soak (replays of one step) flips bits.
[[nodiscard]] std::vector<int> flipping_ranks(std::span<const settings::Injection> injections,
                                              std::span<const int> world_ranks);

/// Returns the clock error that is injected on a rank of the launch; absent if there is none.
[[nodiscard]] std::optional<comm::ClockFault> clock_fault_of(
    std::span<const settings::Injection> injections, int world_rank);

}  // namespace isoscale::runner::plan
