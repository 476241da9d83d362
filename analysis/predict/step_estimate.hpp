// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/efficiency/pop_factors_and_losses.hpp"
#include "analysis/predict/prediction.hpp"
#include "results/records/run_data.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::analysis::predict {

/// Selects what is estimated: only the time, or also a traced step that is divided into parts.
enum class Detail : std::uint8_t { time, trace };
/// Selects the ranks that are simulated to find the delay by noise: one for each class of ranks
/// with equal programs, or every rank. The time without noise always comes from one rank per class.
enum class Ranks : std::uint8_t { by_class, each };

/// Says how steps are estimated. The references must outlive the call that gets them.
struct EstimateSetting {
  const workloads::Workload& workload;
  const simulate::Machine& machine;
  const simulate::Layout& layout;
  Detail detail = Detail::time;
  Ranks ranks = Ranks::by_class;
  double most_bytes = std::numeric_limits<double>::infinity();  ///< limit on device memory
};

struct StepEstimate {
  /// Seconds without noise; infinite if the step needs more than EstimateSetting::most_bytes.
  double simulated = 0;
  double delay = 0;     ///< seconds that noise and slow ranks add
  StepMemory memory{};  ///< largest over ranks
  double work = 0;      ///< work of a step, in the workload's unit
  // The members below are set only with Detail::trace.
  std::optional<double> model_flop{};               ///< FLOP of all ranks, without recomputation
  std::optional<breakdown::Breakdown> breakdown{};  ///< parts of the step without noise
  std::optional<efficiency::StepLoss> loss{};
  /// The step as a point of a run with one traced step and one rank for each class of equal ranks,
  /// as far as breakdowns and costs need it; set only by whole_step(). `ranks` and `outline` are
  /// those of the classes. `mesh` is the request's, so that communication along an axis keeps its
  /// name even if all ranks along it are in one class.
  std::optional<results::PointData> point{};

  [[nodiscard]] double seconds() const { return simulated + delay; }
};

/// Returns the breakdown of an estimated step with its noise, which counts as waiting; `correction`
/// multiplies all parts. Absent if the estimate has none.
[[nodiscard]] std::optional<breakdown::Breakdown> breakdown_of(const StepEstimate& estimate,
                                                               double correction);

/// Estimates one step of `request`. If the step needs more than `most_bytes` on the device, the
/// estimate has only its memory and work, and an infinite time. Throws base::UsageError if the
/// request is impossible, or if the machine lacks values that the step needs.
///
/// Once a pipeline is full, each further microbatch adds the same time, work and memory. A step
/// with many microbatches is therefore computed from two short ones: both are simulated, and their
/// difference is repeated up to the number of microbatches (see short_steps). The division of a
/// rank's waiting time into bubble and wait is extended in the same way, although in longer steps
/// the bubble may be a smaller part of it.
///
/// If `most_bytes` is finite, as in a search, which has to be fast, the two short steps are
/// simulated at the same time. Otherwise they follow each other, which takes less memory.
[[nodiscard]] StepEstimate estimate_step(const EstimateSetting& setting,
                                         const workloads::Request& request);

/// Does the same as estimate_step(), but simulates all microbatches of the step.
[[nodiscard]] StepEstimate whole_step(const EstimateSetting& setting,
                                      const workloads::Request& request);

/// The two short steps from which the time of a long step is computed.
struct ShortSteps {
  int few = 0, more = 0;  ///< their numbers of microbatches
  double repeats = 0;     ///< how often their difference is added to the longer one
};
/// Returns steps of two and three turns of microbatches. A turn is a multiple of the number of
/// pipeline stages, because the interleaved schedule needs multiples of them, and has at least four
/// microbatches. In two turns all stages reach their largest number of microbatches in flight, and
/// the largest number of gradients that are being sent. Absent if the step has at most three turns,
/// if the request has no option for the batch or the microbatches, and if microbatches or replicas
/// differ: experts with unequal loads, replicas with unequal shares.
[[nodiscard]] std::optional<ShortSteps> short_steps(const workloads::Request& request);

/// Adds `factor` times the costs `more` to `costs`. A cost that one of them lacks stays as it is,
/// except transfers, which count as 0 where they are missing.
void add(const efficiency::StepCosts& more, double factor, efficiency::StepCosts& costs);

[[nodiscard]] StepMemory step_memory(const program::RankProgram& program);

/// Returns the memory that `isoscale run` needs for the request: for its own programs, not those of
/// training software, with the sections that check results. On the host device a run also needs
/// copies for MPI, which are not counted.
[[nodiscard]] StepMemory run_memory(const workloads::Workload& workload,
                                    workloads::Request request);

/// Returns the device memory of a rank of one pipeline stage, from the program of this stage alone;
/// the whole step needs at least as much. The workload must be built from the stack of layers.
[[nodiscard]] double stage_device_bytes(const workloads::Request& request, int stage);

/// Returns layers times microbatches of the steps that estimate_step() simulates for a request. The
/// time of the simulation is roughly proportional to this product.
[[nodiscard]] double layer_passes(const workloads::Request& request);

}  // namespace isoscale::analysis::predict
