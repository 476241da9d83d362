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
#include "results/run_data.hpp"
#include "simulate/classes.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::analysis {

/// A step that has been played, with what it takes to trace it: some tens of bytes an op, much less
/// than its programs.
struct PlayedStep {
  simulate::Classes classes;
  simulate::Costs costs{};                               ///< before overlap stretched them
  simulate::ClassStep step{};                            ///< without spans
  std::vector<double> flop_of_rank{}, memory_of_rank{};  ///< of the classes; bytes
  bool folded = false;                                   ///< all streams were played as one
};

/// The number of ops that it holds; classes that play one program share them.
[[nodiscard]] std::size_t op_count(const PlayedStep& played);

/// The same classes as a machine plays them that has one thread for all streams.
[[nodiscard]] simulate::Classes as_folded(const simulate::Classes& classes);

/// The step as a point of a run file: one traced step, as all are in the steady state, of one rank
/// a class. `ranks` and `outline` are of the classes; `mesh` is of the request, so that
/// communication along axes that all ranks of a class share keeps its name.
[[nodiscard]] results::PointData trace(const workloads::Workload& workload,
                                       const workloads::Request& request, PlayedStep played);

/// The extent of an estimate: the time, or also what it takes to trace the step later, or
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

/// Estimates one step of `request`. Throws base::UsageError where the request is impossible or the
/// machine says nothing of what it needs.
[[nodiscard]] StepEstimate estimate_step(const workloads::Workload& workload,
                                         const workloads::Request& request,
                                         const simulate::Machine& machine,
                                         const simulate::Layout& layout, Detail detail,
                                         Ranks ranks = Ranks::by_class);

/// The same for programs that the workload has built for the request.
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

/// The numbers of a step that a search asks for.
struct WholeStep {
  double seconds = 0;                  ///< noise and slow ranks included
  double bytes = 0;                    ///< memory of a rank, largest rank, all spaces
  double device_bytes = 0;             ///< without what the host holds for it
  double work = 0;                     ///< as the workload counts it
  std::optional<PlayedStep> played{};  ///< with Detail::play
  /// These two are there with Detail::trace.
  std::optional<Breakdown> breakdown{};
  std::optional<StepLoss> loss{};
};

/// Calls estimate_step on nodes of `node_ranks`. Throws as that does. A step that needs more than
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

/// Why a step loses to the first of a search: what it spends more time on, the largest first, until
/// most of it is said. "0.31 s more tp transfer", "bubble 12% against 4%", "needs 3.1 GiB more
/// memory" where they are as fast. Both have been traced.
[[nodiscard]] std::string why_not(const WholeStep& loser, const WholeStep& first);

}  // namespace isoscale::analysis
