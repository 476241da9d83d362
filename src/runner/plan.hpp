// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"
#include "executor/executor.hpp"
#include "units/quantity.hpp"
#include "workloads/workload.hpp"

/// From what was asked for and where it runs to the list of points; a pure function.
namespace isoscale::runner {

/// Whether it is known which ranks share a node. unknown = ranks that were not started are planned
/// for.
enum class Nodes : std::uint8_t { known, unknown };

/// these_nodes: the free memory was read on the plan's own nodes. this_machine: it was read on the
/// machine that plans, and the nodes are assumed to have as much.
enum class MemoryOf : std::uint8_t { these_nodes, this_machine };

/// Where a run takes place, as the plan sees it.
struct Site {
  int ranks = 1;
  std::vector<int> node_of_rank{0};
  std::vector<workloads::Precision> precisions;  ///< of the executor
  std::string device;                            ///< "host"
  /// By node, the least that one of its ranks sees in its pool; absent: unknown. May be empty.
  std::vector<std::optional<units::Bytes>> memory_free;
  executor::MemoryPool memory_pool = executor::MemoryPool::node;
  MemoryOf memory_of = MemoryOf::these_nodes;
  /// FLOP/s that the slowest GPU may be expected to reach in bf16 or f16; 0 = there is no GPU.
  double half_precision_rate = 0;
  std::string symmetric_problem{};  ///< executor::Description's, "" where nobody knows of one
  int numa_nodes = 1;               ///< of the node that has the fewest
  units::Bytes gpu_cache{0};        ///< the L2 of the GPU that has most; 0 = unknown
  /// Ranks of this world that share cores with another rank.
  bool oversubscribed = false;
  Nodes nodes = Nodes::known;
};

/// What is put on links along a set of axes in one step, over all ranks: program::Traffic::sent.
struct AxesTraffic {
  mesh::AxisSet axes;
  units::Bytes sent;

  bool operator==(const AxesTraffic&) const = default;
};

/// What a point asks of the rank that has most to do, for an estimate of its time. A
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
  // What the programs say, for --dry-run; absent when skipped before they could be built.
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

/// Points in the order they are measured. A count that the program chose and that does not divide
/// or fit is a point with a reason to be skipped; one that the user named is refused. Throws
/// base::UsageError then, for a precision the executor lacks, for ranks beyond the world, and when
/// nothing would be left to measure. What all that play a point, replicas included, need on a node
/// must be free there; where that is only taken to be this machine's, a point that does not fit is
/// marked and stays. `config` must outlive the plan.
[[nodiscard]] Plan make_plan(const config::RunConfig& config, const Site& site);

/// The plan as a table for people: points, mesh, nodes, loop and time, memory, FLOP, bytes sent by
/// axis and how far each axis reaches, "?" for what is unknown, or that it does not fit. Times are
/// estimates for `device`, see estimate.hpp; with a budget those of the points that would fit, and
/// the others are told of.
[[nodiscard]] std::string describe(const Plan& plan, const config::RunConfig& config,
                                   std::string_view device);

}  // namespace isoscale::runner
