// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "program/facts.hpp"
#include "program/program.hpp"
#include "runner/plan/site.hpp"
#include "settings/run_config.hpp"
#include "units/quantity.hpp"
#include "workloads/api/workload.hpp"

/// The plan of a run: the list of points that follows from the configuration and the site.
namespace isoscale::runner::plan {

/// The work of the busiest rank of a point, from which the point's time is estimated. For a
/// micro-benchmark it is the sum over all cases, each played once.
struct Load {
  double flop = 0;                  ///< FLOP of one step
  units::Bytes sent{0}, memory{0};  ///< bytes sent in one step; memory that is used
  int sessions = 1;                 ///< number of sessions, one after another
  int cases = 0;                    ///< number of cases of a micro-benchmark
  /// The time of a step according to a data sheet; absent if the time is estimated from the members
  /// above.
  std::optional<units::Seconds> step{};
};

struct PlannedPoint {
  int index = 0;
  const settings::Experiment* experiment = nullptr;  ///< not owned, part of the RunConfig
  const workloads::Workload* workload = nullptr;     ///< not owned, part of the registry
  int ranks = 1;
  workloads::Request request;    ///< the request, fitted to the point's mesh
  std::vector<int> world_ranks;  ///< in mesh order
  std::optional<int> nodes = 1;  ///< number of nodes that these ranks are on; absent if unknown
  std::string skip_reason;       ///< why the point is not measured; "" if it is measured
  std::string misfit{};  ///< needed and free memory, if it does not fit: "661 GiB of 23.5 GiB"
  // The following facts of the programs are for --dry-run. They are absent if the point was skipped
  // before its programs were built.
  std::optional<double> flop_per_step{};          ///< FLOP of one step, over all ranks
  std::optional<units::Bytes> memory_per_rank{};  ///< memory of the rank that needs most
  /// The memory of pinned and pageable buffers, which are in host memory, on the rank with the
  /// most.
  units::Bytes host_memory_per_rank{0};
  /// The bytes that all ranks send in one step, for each set of axes; see program::Traffic::sent.
  std::map<mesh::AxisSet, units::Bytes> sent_by_axes{};
  Load load{};
  std::string reach{};                    ///< mesh::reach_text(), or "?" if nodes are unknown
  std::vector<std::string> notes{};       ///< further remarks for the plan, a sentence each
  std::vector<std::string> injections{};  ///< texts of the injections that affect the point
};

/// True if the point's work depends on a model.
[[nodiscard]] bool uses_model(const PlannedPoint& point);

struct Plan {
  std::vector<PlannedPoint> points;
};

/// Returns the points in the order in which they are measured. If a workload cannot use a rank
/// count, the point is skipped if the program chose the count; if the user named it,
/// base::UsageError is thrown. base::UsageError is also thrown for a precision that the executor
/// lacks, for more ranks than the world has, if no point is left to measure, and if the ranks that
/// play on a node, replicas included, need more memory than is free there. If the free memory is
/// known only for this machine and not for the plan's nodes, a point that does not fit is marked
/// and stays in the plan. `config` must outlive the plan.
[[nodiscard]] Plan make_plan(const settings::RunConfig& config, const Site& site);

/// Returns the facts of each program, not of each rank: index them with
/// ProgramSet::program_of_rank. Ranks with the same work share a program, and analysing a program
/// of a large model takes a while.
[[nodiscard]] std::vector<program::Facts> facts_of_programs(const program::ProgramSet& set);

/// Builds the programs of a point, and stores their work, memory and traffic in it, and the
/// injections that affect it. Throws base::UsageError if the programs do not fit into the memory of
/// `site`.
void add_program_needs(PlannedPoint& point, const settings::RunConfig& config, const Site& site);

/// The role of one rank of the world while a point is measured.
struct RankRole {
  int replica = -1;  ///< 0: plays the point; above 0: plays a copy of it; -1: sleeps
  int position = 0;  ///< rank within the point or copy, in mesh order
};

/// Returns the role of each world rank. With FillIdle::replicas the ranks outside the point play
/// copies of it, in groups as large as the point and in node order; the ranks that are left over
/// sleep. Pure.
[[nodiscard]] std::vector<RankRole> rank_roles(const std::vector<int>& point_ranks,
                                               settings::FillIdle fill,
                                               const std::vector<int>& node_of_rank);

/// If the site has GPUs and the suite has work for GPUs (settings::GpuWork), returns `asked` with
/// this work instead of its model, type and options; else returns `asked` unchanged. The second
/// value is a line that names the chosen model and the reason; "" if none was chosen. The chosen
/// model is the first that meets two conditions, or else the last: a dp program of it fits into the
/// memory of one GPU, and a step on one GPU, with a batch of at least one sample for every rank,
/// takes at most GpuWork::longest_step at Site::half_precision_rate. The batch is then the largest
/// power of two with such a step. If the GPUs lack bf16, f16 is used. The result is the same on
/// every rank.
[[nodiscard]] std::pair<settings::RunConfig, std::string> with_gpu_work(
    const settings::RunConfig& asked, const Site& site);

}  // namespace isoscale::runner::plan
