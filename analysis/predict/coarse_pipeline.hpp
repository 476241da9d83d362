// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "workloads/stack/pipeline.hpp"

namespace isoscale::analysis {

/// A pipeline whose passes are known: one op each, with the messages of the real schedule between
/// them. Seconds.
struct CoarsePipeline {
  /// One pass of one microbatch through a virtual stage.
  struct Chunk {
    double forward = 0, backward = 0;
    double first_forward = 0;    ///< more, of the first microbatch
    double last_backward = 0;    ///< more, of the last microbatch
    double weight_gradient = 0;  ///< part of `backward`
  };
  workloads::stack::Pipeline pipeline{};
  std::vector<Chunk> chunks{};  ///< of each virtual stage
  std::vector<double> tail{};   ///< of each stage, after its last pass
  double message = 0;           ///< from stage to stage
  double arrival = 0;           ///< what a stage does with a message before its pass
};

/// The time from step to step, played for all microbatches.
[[nodiscard]] double play(const CoarsePipeline& coarse);

/// The same for a long step: played for `few` and for `more` microbatches, and the difference
/// repeated until there are as many as the pipeline has. Exact where a steady state has begun by
/// `few` and `more` - `few` is a multiple of its period.
[[nodiscard]] double play_extended(const CoarsePipeline& coarse);

}  // namespace isoscale::analysis
