// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "program/program.hpp"
#include "program/work_and_memory.hpp"
#include "runner/plan/launch_site.hpp"
#include "settings/run_config.hpp"
#include "units/quantity.hpp"
#include "workloads/api/workload.hpp"

/// The plan of a run: all points to measure, as the configuration and the site (ranks, nodes and
/// devices) determine them.
namespace isoscale::runner::plan {

/// The work from which the time of a point is estimated. Each number is the largest of all ranks.
/// For a micro-benchmark, FLOP and sent bytes are sums over one play of each case.
struct Load {
  double flop = 0;                 ///< FLOP of one step
  units::Bytes sent{0};            ///< bytes that the rank sends in one step
  int sessions = 1;                ///< number of sessions, which are played one after another
  int cases = 0;                   ///< number of cases of a micro-benchmark
  double half_precision_rate = 0;  ///< Site::half_precision_rate; 0: unknown
  /// The time of a step by a data sheet; absent: it is estimated from the members above.
  std::optional<units::Seconds> step{};
};

struct PlannedPoint {
  int index = 0;
  const settings::Experiment* experiment = nullptr;  ///< not owned, part of the RunConfig
  const workloads::Workload* workload = nullptr;     ///< not owned, part of the registry
  int ranks = 1;
  workloads::Request request;    ///< the user's request, adapted to the point's mesh
  std::vector<int> world_ranks;  ///< the ranks of the launch that play the point, in mesh order
  std::optional<int> nodes = 1;  ///< number of nodes that these ranks are on; absent if unknown
  std::string skip_reason;       ///< the reason why it is not measured; "" if it is
  /// The needed and the free memory if the point does not fit: "661 GiB of 23.5 GiB"; else "".
  std::string misfit{};
  // The members below describe the point's programs. They are absent or empty if the point was
  // skipped before its programs were built. A step of a micro-benchmark is one play of each case.
  std::optional<double> flop_per_step{};          ///< FLOP of one step, over all ranks
  std::optional<units::Bytes> memory_per_rank{};  ///< memory of the rank that needs most
  /// The host memory (pinned and pageable buffers) of the rank that needs most of it.
  units::Bytes host_memory_per_rank{0};
  /// The bytes that all ranks together send in one step, by the set of axes along which they are
  /// sent; see program::Traffic::sent.
  std::map<mesh::AxisSet, units::Bytes> sent_by_axes{};
  Load load{};
  /// A text that says which axes cross nodes (mesh::reach_text()); "?" if nodes are unknown.
  std::string reach{};
  std::vector<std::string> notes{};       ///< further remarks for the plan, a sentence each
  std::vector<std::string> injections{};  ///< texts of the injected faults that affect the point
};

/// True if the work of the point depends on a model. That of most micro-benchmarks does not.
[[nodiscard]] bool uses_model(const PlannedPoint& point);

struct Plan {
  std::vector<PlannedPoint> points;
};

/// Returns the points of all experiments, in each experiment by ascending rank count. A point is
/// impossible if its workload cannot use the rank count, or if the ranks that play on some node,
/// copies of the point included, need more memory than is free there. For an impossible point,
/// base::UsageError is thrown if the user named the rank counts and no suite; otherwise the point
/// is skipped. A rank count that does not fit the mesh which the program chose for the whole curve
/// is always skipped. If the free memory was read on this machine but the plan is for other nodes,
/// a point that does not fit is only marked (PlannedPoint::misfit) and stays in the plan.
/// base::UsageError is also thrown if the executor lacks a precision, if a workload is only for
/// another device or lacks an axis of the mesh, if a rank or rank count is named that the launch
/// does not have, and if no point is left to measure. `config` must outlive the plan.
[[nodiscard]] Plan make_plan(const settings::RunConfig& config, const Site& site);

/// Returns a sentence for each option that was given and has no effect on any point that is not
/// skipped: "v=3 has no effect without schedule=interleaved".
[[nodiscard]] std::vector<std::string> idle_options(const Plan& plan);

/// Returns the facts of each program of a set. They are in the order of programs, not of ranks;
/// ProgramSet::program_of_rank has the index for each rank. Ranks with the same work share a
/// program, so each program is analysed only once; for a large model this takes a while.
[[nodiscard]] std::vector<program::Facts> facts_of_programs(const program::ProgramSet& set);

/// Builds the programs of a point. Stores in the point their work, memory and traffic, which
/// injected faults affect it, and a skip reason if it needs symmetric memory that cannot be used.
/// Throws base::UsageError if the programs do not fit into the memory of `site`, unless a point
/// that does not fit is only marked (see make_plan()).
void add_program_needs(PlannedPoint& point, const settings::RunConfig& config, const Site& site);

/// The role of a rank of the launch while a point is measured.
struct RankRole {
  int replica = -1;  ///< 0: plays the point; above 0: plays the copy of this number; -1: sleeps
  int position = 0;  ///< rank within the point or within the copy, in mesh order
};

/// Returns the role of each rank of the launch. With FillIdle::replicas, the ranks outside the
/// point play copies of it. They are divided, in the order of nodes, into groups as large as the
/// point; ranks that are left over sleep. A pure function.
[[nodiscard]] std::vector<RankRole> rank_roles(const std::vector<int>& point_ranks,
                                               settings::FillIdle fill,
                                               const std::vector<int>& node_of_rank);

/// If the site has GPUs and the suite has its own work for GPUs (settings::GpuWork), returns
/// `asked` with this work in place of its model, type and options; otherwise returns `asked` with
/// its own. RunConfig::on_gpus is absent in both results. The second value is a line for the user
/// that names the chosen model and the reason; "" if none was chosen. GpuWork lists several models.
/// The chosen one is the first that meets both of these conditions, or the last if none does:
/// - a dp program of it fits into 95% of the free memory of the GPU that has least; if this memory
///   is unknown, no model meets the condition
/// - a step on one GPU, with at least one sample for every rank of the launch, takes at most
///   GpuWork::longest_step at Site::half_precision_rate
/// The batch is the largest power of two with which a step takes at most longest_step, but has at
/// least one sample for every rank. The type is f16 if the GPUs lack bf16. All ranks agree.
[[nodiscard]] std::pair<settings::RunConfig, std::string> with_gpu_work(
    const settings::RunConfig& asked, const Site& site);

}  // namespace isoscale::runner::plan
