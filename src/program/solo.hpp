// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.hpp"

/// A step without its communication: what its other ops take by themselves.
namespace isoscale::program {

/// The step's ops that do not communicate, in the same order on the same streams; one that waited
/// for communication waits for what that had to wait for.
[[nodiscard]] Program without_communication(const Program& step);

/// Appends that step to every program, and tells which section it is: it touches no storage that
/// the first does not.
[[nodiscard]] Section add_solo_step(ProgramSet& set);

/// Indices of the ops that without_communication keeps, in order.
[[nodiscard]] std::vector<std::uint32_t> solo_ops(const Program& step);

}  // namespace isoscale::program
