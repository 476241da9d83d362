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

/// The faults that are injected on one rank of one point. All functions are pure.
namespace isoscale::runner::plan {

/// Throws base::UsageError if an injection names a rank that a launch of `ranks` ranks does not
/// have.
void require_ranks(std::span<const settings::Injection> injections, int ranks);

/// True if an injection changes anything in a point. `set` holds all or some of the point's
/// programs. A slow or stuck rank affects its GEMMs, a delay the GEMMs of all ranks, a slow link
/// the communication between its two ranks, and jitter every compute op. A clock error and flipped
/// bits affect every point in which their rank plays, except micro-benchmarks, which compare no
/// times of different ranks and have no soak.
[[nodiscard]] bool touches(const settings::Injection& injection, const PlannedPoint& point,
                           const program::ProgramSet& set);

/// Returns the texts of the injections that affect no measured point.
[[nodiscard]] std::vector<std::string> idle_injections(
    std::span<const settings::Injection> injections, const Plan& plan);

/// Returns the faults of rank `world_rank` of the launch in a point with the ranks `world_ranks`. A
/// rank that is not one of these has no faults, even if it plays in a copy of the point. Each rank
/// of the launch has random numbers of its own, derived from the seed.
[[nodiscard]] program::Faults faults_of(std::span<const settings::Injection> injections,
                                        std::span<const int> world_ranks, int world_rank,
                                        std::uint64_t seed);

/// Returns the rank of the point whose bits are flipped during its soak; absent if there is none.
[[nodiscard]] std::optional<int> flipping_rank(std::span<const settings::Injection> injections,
                                               std::span<const int> world_ranks);

/// Returns the injected clock error of a rank of the launch; absent if there is none.
[[nodiscard]] std::optional<comm::ClockFault> clock_fault_of(
    std::span<const settings::Injection> injections, int world_rank);

}  // namespace isoscale::runner::plan
