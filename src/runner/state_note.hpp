// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "program/facts.hpp"
#include "program/program.hpp"
#include "workloads/workload.hpp"

namespace isoscale::runner {

/// What a point that shards or offloads states keeps of them, for the plan: "zero=2 keeps 1.2 GiB
/// of 4.8 GiB of states a rank", of the rank that would have most without: by its program's facts,
/// against the formula for zero=0. "" where neither is asked for. `facts` has one entry per program
/// of the set.
[[nodiscard]] std::string state_note(const workloads::Workload& workload,
                                     const workloads::Request& request,
                                     const program::ProgramSet& set,
                                     std::span<const program::Facts> facts);

}  // namespace isoscale::runner
