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

/// Computes how much noise delays a step: by playing every rank, or from random deviations of all
/// ranks and from which ranks wait for each other.
namespace isoscale::simulate {

struct EachRankOptions {
  int steps = 8;           ///< steps that count; one more is played first, as warm-up
  std::uint64_t seed = 1;  ///< seed of the random deviations
};

/// Plays the whole mesh with the costs of its classes, and returns the seconds of the slowest rank
/// in each step. Each rank's compute is multiplied by draws from the machine's noise: a constant
/// factor of the rank and, for each step, a factor of its node and another factor of the rank.
[[nodiscard]] std::vector<double> play_each_rank(const program::ProgramSet& set,
                                                 const Classes& classes, const Costs& class_costs,
                                                 const Noise& noise, const Layout& layout,
                                                 EachRankOptions options = {});

/// Returns the time, in seconds, that the noise of all ranks adds to a step of the classes with
/// these costs. Instead of playing each rank, it draws the deviations of all ranks in many steps,
/// finds in each step the slowest of the ranks that wait for each other, and returns the mean over
/// the steps; the communication in the programs shows which ranks wait for each other.
///
/// The step may be a share of a longer one, whose delay is extended from two shares in proportion.
/// The deviation of a step by the noise of single ops grows only with the root of its length, so
/// that of the share is then its share of the longer step's deviation.
[[nodiscard]] double expected_delay(const program::ProgramSet& set, const Classes& classes,
                                    const Costs& costs, const Noise& noise, const Layout& layout,
                                    double share = 1);

/// Returns the axes along which ranks wait for each other all through a step, not just at its end:
/// in the program of every class, the longest stretch of computation without communication along
/// the axis (and without a wait for such communication on another stream) is at most half of the
/// step's computation.
[[nodiscard]] mesh::AxisSet tight_axes(const mesh::Shape& mesh, const program::OutlineSet& classes,
                                       const Costs& costs);

}  // namespace isoscale::simulate
