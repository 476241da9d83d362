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

/// Computes how noise delays a step: either every rank is played by itself, or the delay is derived
/// from how ranks wait for each other.
namespace isoscale::simulate {

struct EachRankOptions {
  int steps = 8;           ///< simulated, after one that does not count
  std::uint64_t seed = 1;  ///< of the draws
};

struct EachRankResult {
  std::vector<double> step_seconds;  ///< of the slowest rank, by step
  double mean_wait = 0;              ///< seconds per rank and step beyond the noiseless step
};

/// Plays the whole mesh with the costs of its classes, each rank's compute stretched by draws from
/// the machine's noise: constant factors of ranks, and a factor of the node and one of the rank per
/// step.
[[nodiscard]] EachRankResult play_each_rank(const program::ProgramSet& set,
                                            program::Section section, const Classes& classes,
                                            const Costs& class_costs, const Noise& noise,
                                            const Layout& layout, EachRankOptions options = {});

/// Returns the time that the noise of N ranks adds to a step, in seconds, without playing each: the
/// expected largest of as many draws as ranks wait for each other, given the synchronisation of the
/// program.
[[nodiscard]] double expected_delay(const program::ProgramSet& set, const Classes& classes,
                                    const Costs& class_costs, const ClassStep& step,
                                    const Noise& noise, const Layout& layout);

/// Returns the axes along which ranks wait for each other all through a step, not just at its end.
/// Along such an axis the longest stretch of computation between two meetings, or between waits for
/// a meeting on another stream, is at most half of the step's computation. This must hold for every
/// program.
[[nodiscard]] mesh::AxisSet tight_axes(const mesh::Shape& mesh,
                                       const std::vector<program::Outline>& outlines,
                                       const std::vector<std::vector<units::Nanoseconds>>& tables,
                                       const std::vector<std::uint32_t>& outline_of_class,
                                       const std::vector<std::uint32_t>& table_of_class);

/// The time that the independent noise of each op adds to a step of one replica that plays by
/// itself.
struct OpDelay {
  double mean = 0, deviation = 0;  ///< nanoseconds
};

/// Plays one replica, with the ranks that it is tight with (along `tight`, axes that classes do not
/// have), with and without the ops' noise: ranks that deviate anyway hide some of it. Of groups
/// that are too large only a part is played, and its delay is scaled as the expected largest of
/// that many draws grows.
[[nodiscard]] OpDelay op_delay(const program::ProgramSet& set, const Classes& classes,
                               const Costs& costs, const Noise& noise, const Layout& layout,
                               mesh::AxisSet tight);

}  // namespace isoscale::simulate
