// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "program/program.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads::stack {

/// Returns the axes along which ranks play different programs; along the others one program serves
/// all.
[[nodiscard]] mesh::AxisSet program_axes(const Request& request);
/// Returns, by coordinate along dp, the first replica that plays the same program. Several replicas
/// may share a program even if program_axes has dp.
[[nodiscard]] std::vector<int> replica_programs(const Request& request);
/// Builds setup and step of the ranks at `at` along program_axes.
[[nodiscard]] program::RankProgram build_stage(const Request& request, const mesh::Coordinates& at);

}  // namespace isoscale::workloads::stack
