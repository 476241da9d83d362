// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "program/outline.hpp"
#include "program/program.hpp"
#include "simulate/classes.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"
#include "simulate/simulate.hpp"

/// Computes how much noise delays a step, in two ways: by simulating every rank, or from random
/// deviations of all ranks and the knowledge which ranks wait for each other.
namespace isoscale::simulate {

/// Simulates the whole mesh with the op times of its classes, and returns the seconds of the
/// slowest rank in each of `steps` steps, after one more as warm-up. Each rank's compute times are
/// multiplied by 1 + d, where d is the sum of three deviations drawn from `noise`: a constant one
/// of the rank and, for each step, one of its node and one of the rank. The times of single ops
/// vary by Noise::op in addition.
[[nodiscard]] std::vector<double> play_each_rank(const program::ProgramSet& set,
                                                 const Classes& classes, const Costs& class_costs,
                                                 const Noise& noise, const Layout& layout,
                                                 int steps = 8, std::uint64_t seed = 1);

/// Returns the seconds that the noise of all ranks adds to a step of the classes with these op
/// times. It does not simulate each rank: it draws the deviations of all ranks in many steps, finds
/// in each step the slowest of the ranks that wait for each other, and returns the mean over the
/// steps. The communication in the programs shows which ranks wait for each other.
///
/// If the step is a short one whose times are later scaled up to those of a longer step, `share` is
/// the length of the short step over that of the longer one. The delay is then scaled up in
/// proportion to the length, but the standard deviation that comes from the noise of single ops
/// grows only with the root of the length. The function therefore uses the standard deviation of
/// the longer step times `share`.
[[nodiscard]] double expected_delay(const program::ProgramSet& set, const Classes& classes,
                                    const Costs& costs, const Noise& noise, const Layout& layout,
                                    double share = 1);

/// Returns the tight axes: those along which ranks wait for each other all through a step, and not
/// only at its end. An axis is tight if, in the program of every class, no stretch of computation
/// without communication along the axis is longer than half of the step's computation.
/// Communication on another stream counts where the computation waits for it.
[[nodiscard]] mesh::AxisSet tight_axes(const mesh::Shape& mesh, const program::OutlineSet& classes,
                                       const Costs& costs);

}  // namespace isoscale::simulate
