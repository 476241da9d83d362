// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "executor/executor.hpp"
#include "program/facts.hpp"
#include "program/program.hpp"
#include "units/quantity.hpp"

/// What the programs of a point say that they do and need.
namespace isoscale::runner {

/// By program, not by rank: index it with ProgramSet::program_of_rank. Ranks that are alike share a
/// program, and walking through one of a large model takes a while.
[[nodiscard]] std::vector<program::Facts> facts_of_programs(const program::ProgramSet& set);

/// Storage of a rank that plays the program, all spaces together.
[[nodiscard]] units::Bytes memory_total(const program::Facts& facts);

/// The part of it that is taken from the pool: of a device's own memory, what is not the host's.
[[nodiscard]] units::Bytes memory_from(executor::MemoryPool pool, const program::Facts& facts);

/// What a rank puts on links in one step, see program::Traffic::sent.
[[nodiscard]] units::Bytes sent_total(const program::Facts& facts);

}  // namespace isoscale::runner
