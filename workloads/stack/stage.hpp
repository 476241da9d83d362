// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "program/program.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads::stack {

/// Returns the axes along which ranks play different programs. Ranks that differ only along other
/// axes share a program.
[[nodiscard]] mesh::AxisSet program_axes(const Request& request);
/// Returns, for each coordinate along dp, the first replica with the same program. Replicas may
/// share a program even if program_axes() contains dp.
[[nodiscard]] std::vector<int> replica_programs(const Request& request);
/// Builds the setup and the step of the ranks whose coordinates along program_axes() are those of
/// `at`.
[[nodiscard]] program::RankProgram build_stage(const Request& request, const mesh::Coordinates& at);

}  // namespace isoscale::workloads::stack
