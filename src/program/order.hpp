// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "program/clock.hpp"
#include "program/program.hpp"

namespace isoscale::program {

/// What is known to have finished before each op, from stream order and waits alone. Throws
/// base::Error for an op that waits for one that is issued later.
[[nodiscard]] std::vector<Clock> clocks_before(const Program& program);

}  // namespace isoscale::program
