// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/run_config.hpp"
#include "executor/executor.hpp"
#include "machine/facts.hpp"
#include "units/quantity.hpp"
#include "workloads/api/workload.hpp"

/// The site of a launch: its ranks, their nodes and devices, from the facts that all ranks gather.
namespace isoscale::runner {

/// known: the nodes of all ranks are known. unknown: the plan has ranks that were not started.
enum class Nodes : std::uint8_t { known, unknown };

/// these_nodes: the free memory was read on the plan's own nodes. this_machine: it was read on the
/// machine that plans, and the nodes are assumed to have as much.
enum class MemoryOf : std::uint8_t { these_nodes, this_machine };

/// The place of a run, as the plan sees it.
struct Site {
  int ranks = 1;
  std::vector<int> node_of_rank{0};
  std::vector<workloads::Precision> precisions;  ///< of the executor
  std::string device;                            ///< "host"
  /// By node, the least free memory that one of its ranks sees in its pool; absent if unknown. May
  /// be empty.
  std::vector<std::optional<units::Bytes>> memory_free;
  executor::MemoryPool memory_pool = executor::MemoryPool::node;
  MemoryOf memory_of = MemoryOf::these_nodes;
  /// The FLOP/s that the slowest GPU is expected to reach in bf16 or f16; 0 if there is no GPU.
  double half_precision_rate = 0;
  std::string symmetric_problem{};  ///< executor::Description's, "" if none is known
  int numa_nodes = 1;               ///< of the node that has the fewest
  units::Bytes gpu_cache{0};        ///< the L2 of the GPU that has most; 0 = unknown
  /// True if ranks of this world share cores.
  bool oversubscribed = false;
  Nodes nodes = Nodes::known;
};

/// Collective: returns every rank's facts, on all ranks, by rank.
[[nodiscard]] std::vector<machine::MachineFacts> gather_facts(const comm::Communicator& world);

/// True if some ranks must share a core: no assignment gives each of them one of the physical cores
/// that it is bound to, or a node has more of these ranks than physical cores, or than CPUs that a
/// control group allows. Unknown facts are ignored. `ranks` index `facts` and `node_of_rank`.
[[nodiscard]] bool share_cores(std::span<const int> ranks,
                               std::span<const machine::MachineFacts> facts,
                               std::span<const int> node_of_rank);

/// Collective: returns the site of the launch, the same on all ranks.
[[nodiscard]] Site make_site(const comm::Communicator& world, const executor::Description& device,
                             std::span<const machine::MachineFacts> facts);

/// Returns the site that a plan for `config` is made for: `site`, extended by ranks that were not
/// started. --ranks-per-node says which ranks share a node; without it that is unknown for ranks
/// beyond those that were started. Other nodes are assumed to have as much memory as the one that
/// has least.
[[nodiscard]] Site planned_site(Site site, const config::RunConfig& config);

/// Returns the FLOP/s that a GPU of this compute capability (90 = 9.0; 0 = unknown) is expected to
/// reach in bf16 or f16: about half of the peak in data sheets for dense matrices.
[[nodiscard]] double half_precision_rate(int compute_capability);

}  // namespace isoscale::runner
