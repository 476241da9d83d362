// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/efficiency/losses.hpp"
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
  double simulated = 0;        ///< seconds of a step without noise; infinite beyond `most_bytes`
  double delay = 0;            ///< seconds that noise and slow ranks add
  double memory_per_rank = 0;  ///< bytes, largest rank
  double device_memory_per_rank = 0;  ///< bytes, largest rank; without its buffers on the host
  double host_memory_per_rank = 0;    ///< bytes, largest rank; only its buffers on the host
  double work = 0;                    ///< work of a step, in the workload's unit
  /// With Detail::trace, the step as a point of a run file: one traced step in the steady state,
  /// with one rank for each class. `ranks` and `outline` are of the classes. `mesh` is that of the
  /// request: if all ranks of a class share an axis, communication along this axis still keeps its
  /// name.
  std::optional<results::PointData> point{};
  std::optional<breakdown::Breakdown> breakdown{};  ///< of `point`, without noise
  std::optional<efficiency::StepLoss> loss{};

  [[nodiscard]] double seconds() const { return simulated + delay; }
};

/// Estimates one step of `request`. If it needs more than `most_bytes` on the device, the step is
/// not simulated: its time is infinite, and only its memory is computed. Throws base::UsageError if
/// the request is impossible, or if the machine lacks values that the step needs.
[[nodiscard]] StepEstimate estimate_step(
    const workloads::Workload& workload, const workloads::Request& request,
    const simulate::Machine& machine, const simulate::Layout& layout, Detail detail,
    Ranks ranks = Ranks::by_class, double most_bytes = std::numeric_limits<double>::infinity());

/// The memory of one rank. Each field is from the program that needs most of this kind of memory.
struct StepMemory {
  double all = 0;     ///< bytes in all spaces, as the dry run of a measurement counts them
  double device = 0;  ///< bytes, without buffers on the host
  double host = 0;    ///< bytes in pinned and pageable memory
};
[[nodiscard]] StepMemory step_memory(const program::RankProgram& program);
[[nodiscard]] StepMemory step_memory(const program::ProgramSet& set);

/// Returns the device memory of a rank of one pipeline stage by its program, for workloads that are
/// composed from the stack. The whole step needs at least as much, and this builds only one
/// program.
[[nodiscard]] double stage_device_bytes(const workloads::Request& request, int stage);

/// Returns layers times microbatches, summed over the programs of all stages. The time that
/// estimate_step() takes is roughly proportional to it.
[[nodiscard]] double layer_passes(const workloads::Request& request);

/// Returns why a step is slower than the first of a search: the parts that take more time, largest
/// first, until most of the difference is explained. "0.31 s more tp transfer", "bubble 12% against
/// 4%", or "as fast, but needs 3.1 GiB more memory". Both steps must have been traced.
[[nodiscard]] std::string why_not(const StepEstimate& loser, const StepEstimate& first);

}  // namespace isoscale::analysis::predict
