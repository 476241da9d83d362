// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "simulate/coarse.hpp"

namespace isoscale::simulate {

struct CoarseOptions {
  int plays = 1;
  std::vector<double> begin{};  ///< of each rank's first play, nanoseconds; empty = all 0
  /// By what a rank's compute in one play is multiplied; empty = 1.
  std::function<double(int rank, int play)> factor{};
  double op_noise = 0;     ///< standard deviation of each compute op's time, relative
  std::uint64_t seed = 1;  ///< of the ops' draws
};

/// One play on one rank, in nanoseconds.
struct CoarseStep {
  double begin = 0, end = 0;
  double extra = 0;  ///< what the main lane computed longer than without factor and noise
};

/// Plays as simulate() does, and at the same times to the nanosecond where nothing is drawn: steps
/// by [play][rank]. Throws base::Error when the programs deadlock.
[[nodiscard]] std::vector<std::vector<CoarseStep>> play_coarse(const CoarseSet& set,
                                                               const CoarseOptions& options);

/// Plays without draws until one play moves every rank by the same time, as every later one then
/// does. `factor` multiplies each rank's compute; empty = 1.
struct CoarseSteady {
  double period = 0;             ///< nanoseconds
  std::vector<CoarseStep> step;  ///< one in the steady state, by rank, from the first begin
};
[[nodiscard]] CoarseSteady settle(const CoarseSet& set, const std::vector<double>& factor = {});

}  // namespace isoscale::simulate
