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

/// Noise delays a step: every rank is played by itself, or the delay is worked out from how ranks
/// wait for each other.
namespace isoscale::simulate {

struct EachRankOptions {
  int steps = 8;           ///< simulated, after one that is not counted
  std::uint64_t seed = 1;  ///< of the draws
};

struct EachRankResult {
  std::vector<double> step_seconds;  ///< of the slowest rank, by step
  double mean_wait = 0;              ///< seconds a rank and step that the noiseless step has not
};

/// Plays the whole mesh with costs of its classes, each rank's compute stretched by draws from the
/// machine's noise: standing factors of ranks, a factor of the node and one of the rank per step.
[[nodiscard]] EachRankResult play_each_rank(const program::ProgramSet& set,
                                            program::Section section, const Classes& classes,
                                            const Costs& class_costs, const Noise& noise,
                                            const Layout& layout, EachRankOptions options = {});

/// The time that the noise of N ranks adds to a step, in seconds, without playing each: the
/// expected largest of as many draws as ranks wait for each other, by the synchronisation that the
/// program has.
[[nodiscard]] double expected_delay(const program::ProgramSet& set, const Classes& classes,
                                    const Costs& class_costs, const ClassStep& step,
                                    const Noise& noise, const Layout& layout);

/// The axes along which ranks wait for each other all through a step, not just at its end: where
/// the longest stretch of computation between two meetings along the axis, or waits for one on
/// another stream, is at most half of the step's. Every program must do so.
[[nodiscard]] mesh::AxisSet tight_axes(const mesh::Shape& mesh,
                                       const std::vector<program::Outline>& outlines,
                                       const std::vector<std::vector<units::Nanoseconds>>& tables,
                                       const std::vector<std::uint32_t>& outline_of_class,
                                       const std::vector<std::uint32_t>& table_of_class);

/// The time that the noise of each op by itself adds to a step of one replica, as it plays by
/// itself.
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
