// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/predict/played_step.hpp"
#include "results/run_data.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"
#include "workloads/workload.hpp"

namespace isoscale::analysis {

/// How much is wanted of an estimate: the time, or also what it takes to trace the step later, or
/// the traced step that breakdown reads; and whether every rank is played by itself.
enum class Detail : std::uint8_t { time, play, trace };
enum class Ranks : std::uint8_t { by_class, each };

struct StepEstimate {
  double simulated = 0;                ///< seconds of a step without noise
  double delay = 0;                    ///< seconds that noise and slow ranks add
  double memory_per_rank = 0;          ///< bytes, largest rank
  double device_memory_per_rank = 0;   ///< bytes, largest rank; without what the host holds for it
  double flop = 0;                     ///< of a step, over all ranks
  double work = 0;                     ///< of a step, as the workload counts it
  std::optional<PlayedStep> played{};  ///< with Detail::play
  std::optional<results::PointData> point{};  ///< with Detail::trace, as trace() gives it
};

/// What one step of `request` takes. Throws base::UsageError where the request is impossible or the
/// machine says nothing of what it needs.
[[nodiscard]] StepEstimate estimate_step(const workloads::Workload& workload,
                                         const workloads::Request& request,
                                         const simulate::Machine& machine,
                                         const simulate::Layout& layout, Detail detail,
                                         Ranks ranks = Ranks::by_class);

/// As above, of programs that the workload has built for the request.
[[nodiscard]] StepEstimate estimate_step(const workloads::Workload& workload,
                                         const workloads::Request& request,
                                         const program::ProgramSet& set,
                                         const simulate::Machine& machine,
                                         const simulate::Layout& layout, Detail detail,
                                         Ranks ranks = Ranks::by_class);

/// Storage of a rank that plays one of the programs, largest rank.
struct StepMemory {
  double all = 0;     ///< bytes, all spaces together, as the dry run of a measurement counts it
  double device = 0;  ///< bytes, without what the host holds for it
};
[[nodiscard]] StepMemory step_memory(const program::ProgramSet& set);

}  // namespace isoscale::analysis
