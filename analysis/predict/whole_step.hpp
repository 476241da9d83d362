// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <limits>
#include <optional>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/efficiency/losses.hpp"
#include "analysis/predict/step_estimate.hpp"
#include "simulate/machine.hpp"
#include "workloads/workload.hpp"

namespace isoscale::analysis {

/// What a search wants to know of a step.
struct WholeStep {
  double seconds = 0;                  ///< noise and slow ranks included
  double bytes = 0;                    ///< memory of a rank, largest rank, all spaces
  double device_bytes = 0;             ///< without what the host holds for it
  double work = 0;                     ///< as the workload counts it
  std::optional<PlayedStep> played{};  ///< with Detail::play
  /// With Detail::trace.
  std::optional<Breakdown> breakdown{};
  std::optional<StepLoss> loss{};
};

/// By estimate_step, on nodes of `node_ranks`. Throws as that does. A step that needs more than
/// `most_bytes` on the device is not played: its `seconds` are infinite, its memory is known.
[[nodiscard]] WholeStep whole_step(const workloads::Workload& workload,
                                   const workloads::Request& request,
                                   const simulate::Machine& machine, int node_ranks, Detail detail,
                                   double most_bytes = std::numeric_limits<double>::infinity());

/// Device memory that a rank of one pipeline stage needs by its program, of workloads that are
/// composed from the stack: the whole step needs no less, and this takes one program.
[[nodiscard]] double stage_device_bytes(const workloads::Request& request, int stage);

/// Traces one that `request` was played for with Detail::play: what Detail::trace would have given.
void trace(const workloads::Workload& workload, const workloads::Request& request, WholeStep& step);

/// Layers times microbatches of its programs, of all stages together: what the time of whole_step
/// is about proportional to.
[[nodiscard]] double layer_passes(const workloads::Request& request);

}  // namespace isoscale::analysis
