// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/long_step.hpp"

#include <algorithm>

namespace isoscale::analysis {

std::optional<StepLengths> shorter_steps(const workloads::stack::Pipeline& pipeline) {
  constexpr int least_turn = 2;
  const int p = pipeline.stages;
  const int turn = (least_turn + p - 1) / p * p;
  const StepLengths lengths{.few = 2 * turn, .more = 3 * turn};
  const int wanted = pipeline.microbatches;
  const bool divides =
      pipeline.schedule != workloads::stack::Schedule::interleaved || wanted % p == 0;
  if (wanted <= lengths.more || !divides) return std::nullopt;
  return lengths;
}

double extended(double few, double more, const StepLengths& lengths, int wanted) {
  const double each = (more - few) / (lengths.more - lengths.few);
  return more + each * (wanted - lengths.more);
}

}  // namespace isoscale::analysis
