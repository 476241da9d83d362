// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "program/program.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads::stack {

/// The axes along which ranks play different programs; along the others one program serves all.
[[nodiscard]] mesh::AxisSet program_axes(const Request& request);
/// By coordinate along dp, the first one whose program it plays: several replicas may share one
/// also where program_axes has dp.
[[nodiscard]] std::vector<int> replica_programs(const Request& request);
/// Setup and step of the ranks that stand at `at` along program_axes.
[[nodiscard]] program::RankProgram build_stage(const Request& request, const mesh::Coordinates& at);

}  // namespace isoscale::workloads::stack
