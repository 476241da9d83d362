// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.hpp"
#include "simulate/classes.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"

/// Every rank by itself: noise and slow ranks, and who waits for whom.
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

/// What the noise of N ranks adds to a step, in seconds, without playing each: the expected largest
/// of as many draws as ranks wait for each other, by the synchronisation that the program has.
[[nodiscard]] double expected_delay(const program::ProgramSet& set, const Classes& classes,
                                    const Costs& class_costs, const ClassStep& step,
                                    const Noise& noise, const Layout& layout);

}  // namespace isoscale::simulate
