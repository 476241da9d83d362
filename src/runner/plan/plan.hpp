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

/// The plan of a run: the list of points that follows from the configuration and the site.
namespace isoscale::runner {

/// The bytes that all ranks put on links along a set of axes in one step, see
/// program::Traffic::sent.
struct AxesTraffic {
  mesh::AxisSet axes;
  units::Bytes sent;

  bool operator==(const AxesTraffic&) const = default;
};

/// The work of the rank that has most to do in a point; the point's time is estimated from it. For
/// a micro-benchmark it covers all cases, each played once.
struct Load {
  double flop = 0;                  ///< of one step
  units::Bytes sent{0}, memory{0};  ///< put on links in one step; storage
  int sessions = 1;                 ///< prepared one after the other
  int cases = 0;                    ///< of a micro-benchmark
  /// The time of a step on the data sheet that prices the plan; absent if it follows from the
  /// above.
  std::optional<units::Seconds> step{};
};

struct PlannedPoint {
  int index = 0;
  const config::Experiment* experiment = nullptr;  ///< not owned: of the RunConfig
  const workloads::Workload* workload = nullptr;   ///< not owned: of the registry
  int ranks = 1;
  workloads::Request request;    ///< at the point's mesh
  std::vector<int> world_ranks;  ///< in mesh order
  std::optional<int> nodes = 1;  ///< of these ranks; absent: unknown
  std::string skip_reason;       ///< not "" = is not measured
  std::string misfit{};          ///< "661 GiB of 23.5 GiB": needed and available memory
  // Facts of the programs, for --dry-run; absent if the point was skipped before they could be
  // built.
  std::optional<double> flop_per_step{};          ///< over all ranks
  std::optional<units::Bytes> memory_per_rank{};  ///< of the rank that needs most
  /// The pinned and pageable buffers, which lie in host memory, of the rank that has most of them.
  units::Bytes host_memory_per_rank{0};
  std::optional<units::Bytes> sent_per_step{};  ///< put on links, all ranks: Traffic::sent
  std::vector<AxesTraffic> sent_by_axes{};      ///< the same by axes; ascending
  Load load{};
  std::string reach{};                    ///< mesh::reach_text, or "?" where nodes are unknown
  std::vector<std::string> notes{};       ///< further notes of the plan on it, a sentence each
  std::vector<std::string> injections{};  ///< texts of those that touch it, in the order given
};

/// False for a micro-benchmark that does not depend on a model.
[[nodiscard]] bool uses_model(const PlannedPoint& point);

struct Plan {
  std::vector<PlannedPoint> points;
};

/// Returns the points in the order in which they are measured. If a count that the program chose
/// does not divide or fit, its point has a reason to be skipped; a count that the user named is
/// refused. Throws base::UsageError in that case, for a precision the executor lacks, for ranks
/// beyond the world, and if nothing would be left to measure. The memory that all ranks which play
/// a point need on a node, replicas included, must be free there. If that memory is only assumed to
/// be this machine's, a point that does not fit is marked and stays. `config` must outlive the
/// plan.
[[nodiscard]] Plan make_plan(const config::RunConfig& config, const Site& site);

/// The role of one rank of the world while a point is measured.
struct RankRole {
  int replica = -1;  ///< 0: the point itself; above: a copy of it; -1: it sleeps
  int position = 0;  ///< in the replica, mesh order
};

/// Returns the role of each world rank. With FillIdle::replicas the ranks outside the point play
/// copies of it, in groups as large as the point, in node order; ranks left over sleep. Pure.
[[nodiscard]] std::vector<RankRole> rank_roles(const std::vector<int>& point_ranks,
                                               config::FillIdle fill,
                                               const std::vector<int>& node_of_rank);

/// Returns `asked` with the work that suits this site's GPUs, and one line that says which model
/// was chosen and why ("" if there was nothing to choose). On GPUs, a suite's work for them
/// (config::GpuWork) replaces its model, type and options, as if the user had named it. It takes
/// the first model whose dp program of one rank fits into the memory of a GPU, and whose step with
/// a sample for every rank is short enough at Site::half_precision_rate; else the last model. The
/// batch is then the largest power of two whose step is short enough. If the GPUs lack bf16, f16
/// replaces it. The result is the same on every rank.
[[nodiscard]] std::pair<config::RunConfig, std::string> with_gpu_work(
    const config::RunConfig& asked, const Site& site);

}  // namespace isoscale::runner
