// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/run_config.hpp"
#include "runner/plan/site.hpp"
#include "units/quantity.hpp"
#include "workloads/api/workload.hpp"

/// The plan of a run: the list of points that follows from what was asked for and where it runs.
namespace isoscale::runner {

/// The bytes that are put on links along a set of axes in one step, over all ranks:
/// program::Traffic::sent.
struct AxesTraffic {
  mesh::AxisSet axes;
  units::Bytes sent;

  bool operator==(const AxesTraffic&) const = default;
};

/// The work of the rank that has most to do in a point, for an estimate of its time. A
/// micro-benchmark's are of all its cases, each played once.
struct Load {
  double flop = 0;                  ///< of one step
  units::Bytes sent{0}, memory{0};  ///< put on links in one step; storage
  int sessions = 1;                 ///< prepared one after the other
  int cases = 0;                    ///< of a micro-benchmark
  /// Time of a step on the data sheet that prices the plan; absent: it follows from the above.
  std::optional<units::Seconds> step{};
};

struct PlannedPoint {
  int index = 0;
  const config::Experiment* experiment = nullptr;  ///< not owned: of the RunConfig
  const workloads::Workload* workload = nullptr;   ///< not owned: of the registry
  int ranks = 1;
  workloads::Request request;    ///< at the point's mesh
  std::vector<int> world_ranks;  ///< in mesh order
  std::optional<int> nodes = 1;  ///< that these ranks are on; absent: unknown
  std::string skip_reason;       ///< not "" = is not measured
  std::string misfit{};          ///< "661 GiB of 23.5 GiB": memory that it needs, and that there is
  // Facts of the programs, for --dry-run; absent when skipped before they could be built.
  std::optional<double> flop_per_step{};          ///< over all ranks
  std::optional<units::Bytes> memory_per_rank{};  ///< of the rank that needs most
  /// Pinned and pageable buffers, which lie in the host's memory, of the rank that has most.
  units::Bytes host_memory_per_rank{0};
  std::optional<units::Bytes> sent_per_step{};  ///< put on links, all ranks: Traffic::sent
  std::vector<AxesTraffic> sent_by_axes{};      ///< of which, by axes; ascending
  Load load{};
  std::string reach{};                    ///< mesh::reach_text, or "?" where nodes are unknown
  std::vector<std::string> notes{};       ///< what else the plan says of it, a sentence each
  std::vector<std::string> injections{};  ///< texts of those that touch it, in the order given
};

/// False for a micro-benchmark that has nothing to do with a model.
[[nodiscard]] bool uses_model(const PlannedPoint& point);

struct Plan {
  std::vector<PlannedPoint> points;
};

/// Returns the points in the order they are measured. A count that the program chose and that does
/// not divide or fit is a point with a reason to be skipped; one that the user named is refused.
/// Throws base::UsageError then, for a precision the executor lacks, for ranks beyond the world,
/// and when nothing would be left to measure. What all that play a point, replicas included, need
/// on a node must be free there; where that is only taken to be this machine's, a point that does
/// not fit is marked and stays. `config` must outlive the plan.
[[nodiscard]] Plan make_plan(const config::RunConfig& config, const Site& site);

/// The role of one rank of the world while a point is measured.
struct RankRole {
  int replica = -1;  ///< 0: the point itself; above: a copy of it; -1: it sleeps
  int position = 0;  ///< in the replica, mesh order
};

/// Returns the role of each world rank. With FillIdle::replicas the ranks outside the point play
/// copies of it in groups as large as the point, in node order; what is left over sleeps. Pure.
[[nodiscard]] std::vector<RankRole> rank_roles(const std::vector<int>& point_ranks,
                                               config::FillIdle fill,
                                               const std::vector<int>& node_of_rank);

/// Returns `asked` with the work chosen that suits this site's GPUs, and one line that says which
/// model was chosen and why ("" if there was nothing to choose). On GPUs a suite's work for them
/// (config::GpuWork) takes the place of its model, type and options, as if the user had named it:
/// the first model whose dp program of one rank fits into the memory of a GPU, and whose step with
/// a sample for every rank is short enough at Site::half_precision_rate; else the last. The batch
/// is then the largest power of two whose step is. bf16 is f16 where GPUs lack it. The same on
/// every rank.
[[nodiscard]] std::pair<config::RunConfig, std::string> with_gpu_work(
    const config::RunConfig& asked, const Site& site);

}  // namespace isoscale::runner
