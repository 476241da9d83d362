// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "program/program.hpp"
#include "workloads/workload.hpp"

namespace isoscale::workloads::stack {

/// Setup and step of the ranks of pipeline stage `stage`; alike for all of them.
[[nodiscard]] program::RankProgram build_stage(const Request& request, int stage);

}  // namespace isoscale::workloads::stack
