// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/efficiency/losses.hpp"
#include "analysis/predict/prediction.hpp"
#include "results/records/run_data.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::analysis::predict {

/// The results of an estimate: only the time, or also the traced step that breakdown() reads.
enum class Detail : std::uint8_t { time, trace };
/// The ranks that are simulated: one for each class of ranks with equal programs, or every rank.
enum class Ranks : std::uint8_t { by_class, each };

struct StepEstimate {
  double simulated = 0;  ///< seconds of a step without noise; infinite beyond `most_bytes`
  double delay = 0;      ///< seconds that noise and slow ranks add
  StepMemory memory{};   ///< of the largest rank
  double work = 0;       ///< work of a step, in the workload's unit
  // The following are known with Detail::trace.
  std::optional<double> model_flop{};               ///< FLOP of all ranks, without recomputation
  std::optional<breakdown::Breakdown> breakdown{};  ///< of the step without noise
  std::optional<efficiency::StepLoss> loss{};
  /// The step as a point of a run file, only from whole_step(): one traced step in the steady
  /// state, with one rank for each class. `ranks` and `outline` are of the classes. `mesh` is that
  /// of the request: if all ranks of a class share an axis, communication along this axis still
  /// keeps its name.
  std::optional<results::PointData> point{};

  [[nodiscard]] double seconds() const { return simulated + delay; }
};

/// Estimates one step of `request`. If it needs more than `most_bytes` on the device, the step is
/// not simulated: its time is infinite, and only its memory is computed. Throws base::UsageError if
/// the request is impossible, or if the machine lacks values that the step needs.
///
/// Once a pipeline is full, each further microbatch adds the same time, work and memory to a step.
/// So a step with many microbatches is extended from two short ones: both are simulated, and their
/// difference is repeated up to the number of microbatches (see short_steps). Where a rank's
/// bubble ends and its wait begins is also extended, although the bubble of a longer step may be a
/// smaller part of their sum.
[[nodiscard]] StepEstimate estimate_step(
    const workloads::Workload& workload, const workloads::Request& request,
    const simulate::Machine& machine, const simulate::Layout& layout, Detail detail,
    Ranks ranks = Ranks::by_class, double most_bytes = std::numeric_limits<double>::infinity());

/// Does the same with the whole programs, however many microbatches they have.
[[nodiscard]] StepEstimate whole_step(const workloads::Workload& workload,
                                      const workloads::Request& request,
                                      const simulate::Machine& machine,
                                      const simulate::Layout& layout, Detail detail,
                                      Ranks ranks = Ranks::by_class,
                                      double most_bytes = std::numeric_limits<double>::infinity());

/// The two steps from which a long one is extended.
struct ShortSteps {
  int few = 0, more = 0;  ///< their numbers of microbatches
  double repeats = 0;     ///< how often their difference is added to the step with `more`
};
/// Returns two and three turns of microbatches. A turn has as many as the pipeline has stages,
/// since the interleaved schedule needs multiples of them, and at least four. In two turns all
/// stages reach their largest number of microbatches in flight, and the most gradients under way.
/// Absent if the step is no longer than three turns, and where microbatches or replicas differ: for
/// experts with unequal loads and for replicas with unequal shares.
[[nodiscard]] std::optional<ShortSteps> short_steps(const workloads::Request& request);

/// Adds `factor` times the costs `more` to `costs`.
void add(const efficiency::StepCosts& more, double factor, efficiency::StepCosts& costs);

[[nodiscard]] StepMemory step_memory(const program::RankProgram& program);
[[nodiscard]] StepMemory step_memory(const program::ProgramSet& set);

/// Returns the device memory of a rank of one pipeline stage by its program, for workloads that are
/// composed from the stack. The whole step needs at least as much, and this builds only one
/// program.
[[nodiscard]] double stage_device_bytes(const workloads::Request& request, int stage);

/// Returns layers times microbatches of the steps that estimate_step() simulates, summed over the
/// programs of all stages. The time that it takes is roughly proportional to it.
[[nodiscard]] double layer_passes(const workloads::Request& request);

}  // namespace isoscale::analysis::predict
