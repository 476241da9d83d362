// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/efficiency/losses.hpp"
#include "results/records/run_data.hpp"
#include "simulate/classes.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::analysis::predict {

/// A played step with the data for tracing it later: some tens of bytes per op, much less than its
/// programs.
struct PlayedStep {
  simulate::Classes classes;
  simulate::Costs costs{};                               ///< before overlap stretched them
  simulate::ClassStep step{};                            ///< without spans
  std::vector<double> flop_of_rank{}, memory_of_rank{};  ///< by class; memory in bytes
  bool folded = false;                                   ///< all streams were folded into one
};

/// Returns the number of ops that a played step holds; classes with the same program share them.
[[nodiscard]] std::size_t op_count(const PlayedStep& played);

/// Returns these classes for a machine that plays all streams on one thread.
[[nodiscard]] simulate::Classes as_folded(const simulate::Classes& classes);

/// Returns the step as a point of a run file: one traced step in the steady state, with one rank
/// for each class. `ranks` and `outline` are of the classes; `mesh` is that of the request, so that
/// communication along axes which all ranks of a class share keeps its name.
[[nodiscard]] results::PointData trace(const workloads::Workload& workload,
                                       const workloads::Request& request, PlayedStep played);

/// The extent of an estimate: only the time, also the data for tracing the step later, or the
/// traced step that breakdown() reads.
enum class Detail : std::uint8_t { time, play, trace };
/// The ranks that are played: one for each class of like ranks, or every rank.
enum class Ranks : std::uint8_t { by_class, each };

struct StepEstimate {
  double simulated = 0;                ///< seconds of a step without noise; see `most_bytes` below
  double delay = 0;                    ///< seconds that noise and slow ranks add
  double memory_per_rank = 0;          ///< bytes, largest rank
  double device_memory_per_rank = 0;   ///< bytes, largest rank; without its buffers on the host
  double work = 0;                     ///< of a step, as the workload counts it
  std::optional<PlayedStep> played{};  ///< with Detail::play
  std::optional<results::PointData> point{};  ///< with Detail::trace, see trace()
  /// The breakdown and the loss are set by whole_step() with Detail::trace, and by trace().
  std::optional<breakdown::Breakdown> breakdown{};
  std::optional<efficiency::StepLoss> loss{};

  [[nodiscard]] double seconds() const { return simulated + delay; }
};

/// Estimates one step of `request`. A step that needs more than `most_bytes` on the device is not
/// played: its time is infinite, its memory is known. Throws base::UsageError where the request is
/// impossible or the machine lacks values that it needs.
[[nodiscard]] StepEstimate estimate_step(
    const workloads::Workload& workload, const workloads::Request& request,
    const simulate::Machine& machine, const simulate::Layout& layout, Detail detail,
    Ranks ranks = Ranks::by_class, double most_bytes = std::numeric_limits<double>::infinity());

/// The memory of one rank: in each field, that of the program that needs most.
struct StepMemory {
  double all = 0;     ///< bytes in all spaces, as the dry run of a measurement counts them
  double device = 0;  ///< bytes, without buffers on the host
};
[[nodiscard]] StepMemory step_memory(const program::RankProgram& program);
[[nodiscard]] StepMemory step_memory(const program::ProgramSet& set);

/// Calls estimate_step on nodes of `node_ranks` ranks, and adds the breakdown and the losses to a
/// traced step.
[[nodiscard]] StepEstimate whole_step(const workloads::Workload& workload,
                                      const workloads::Request& request,
                                      const simulate::Machine& machine, int node_ranks,
                                      Detail detail,
                                      double most_bytes = std::numeric_limits<double>::infinity());

/// Returns the device memory of a rank of one pipeline stage by its program, for workloads that are
/// composed from the stack. The whole step needs at least as much, and this builds only one
/// program.
[[nodiscard]] double stage_device_bytes(const workloads::Request& request, int stage);

/// Traces a step that was played with Detail::play for `request`; the result is that of
/// Detail::trace.
void trace(const workloads::Workload& workload, const workloads::Request& request,
           StepEstimate& step);

/// Returns layers times microbatches, summed over the programs of all stages. The time that
/// estimate_step() takes is roughly proportional to it.
[[nodiscard]] double layer_passes(const workloads::Request& request);

/// Returns why a step is slower than the first of a search: the parts that take more time, largest
/// first, until most of the difference is explained. "0.31 s more tp transfer", "bubble 12% against
/// 4%", or "needs 3.1 GiB more memory" if both are equally fast. Both have been traced.
[[nodiscard]] std::string why_not(const StepEstimate& loser, const StepEstimate& first);

}  // namespace isoscale::analysis::predict
