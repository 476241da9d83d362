// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "workloads/stack/pipeline.hpp"

/// A step of many microbatches is a beginning, the same again and again, and an end: two shorter
/// steps tell how long it is.
namespace isoscale::analysis {

/// The microbatches of two steps, both long enough for a steady state.
struct StepLengths {
  int few = 0, more = 0;
};

/// Of a pipeline: turns of as many microbatches as there are stages, so that interleaved ones
/// divide; 2 and 3 turns, in which all stages have had as many microbatches in flight as they ever
/// have, and at least 4 and 6 microbatches. nullopt when the step itself is no longer than that.
[[nodiscard]] std::optional<StepLengths> shorter_steps(const workloads::stack::Pipeline& pipeline);

/// What a step of `wanted` microbatches has of something that the two shorter ones have `few` and
/// `more` of: straight on.
[[nodiscard]] double extended(double few, double more, const StepLengths& lengths, int wanted);

}  // namespace isoscale::analysis
