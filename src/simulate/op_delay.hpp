// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "program/program.hpp"
#include "simulate/classes.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"

namespace isoscale::simulate {

/// What the noise of each op by itself adds to a step of one replica, as it plays by itself.
struct OpDelay {
  double mean = 0, deviation = 0;  ///< nanoseconds
};

/// Plays one replica, with the ranks that it is tight with (along `tight`, axes that classes have
/// not), with and without the ops' noise: ranks that deviate anyway hide some of it. Of groups too
/// large to play here the part that is grows to the whole as the largest of so many does.
[[nodiscard]] OpDelay op_delay(const program::ProgramSet& set, const Classes& classes,
                               const Costs& costs, const Noise& noise, const Layout& layout,
                               mesh::AxisSet tight);

}  // namespace isoscale::simulate
