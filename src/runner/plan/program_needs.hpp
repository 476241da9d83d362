// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "config/run_config.hpp"
#include "program/facts.hpp"
#include "program/program.hpp"
#include "runner/plan/plan.hpp"

/// The work, memory and traffic that the programs of a point need.
namespace isoscale::runner {

/// Returns the facts of each program, not of each rank: index them with
/// ProgramSet::program_of_rank. Ranks with the same work share a program, and analysing a program
/// of a large model takes a while.
[[nodiscard]] std::vector<program::Facts> facts_of_programs(const program::ProgramSet& set);

/// Builds the programs of a point, and stores their work, memory and traffic in it, and the
/// injections that affect it. Throws base::UsageError if the programs do not fit into the memory of
/// `site`.
void add_program_needs(PlannedPoint& point, const config::RunConfig& config, const Site& site);

}  // namespace isoscale::runner
