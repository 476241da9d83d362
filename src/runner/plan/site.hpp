// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "machine/facts.hpp"
#include "settings/run_config.hpp"
#include "units/quantity.hpp"
#include "workloads/api/workload.hpp"

/// The site of a launch: its ranks, their nodes and their devices.
namespace isoscale::runner::plan {

/// known: it is known which ranks are on which node. unknown: it is not, since the plan has ranks
/// that were not started.
enum class Nodes : std::uint8_t { known, unknown };

/// these_nodes: free memory was read on the nodes of the plan. this_machine: it was read on this
/// machine, and the nodes of the plan are assumed to have as much.
enum class MemoryOf : std::uint8_t { these_nodes, this_machine };

/// The ranks, nodes and devices that a plan is made for.
struct Site {
  int ranks = 1;
  std::vector<int> node_of_rank{0};
  std::vector<program::Precision> precisions;  ///< those that the executor supports
  std::string device;                          ///< "host" or "cuda"
  /// For each node, the least free memory that one of its ranks finds in its pool; absent if
  /// unknown. The vector may be empty.
  std::vector<std::optional<units::Bytes>> memory_free;
  executor::MemoryPool memory_pool = executor::MemoryPool::node;
  MemoryOf memory_of = MemoryOf::these_nodes;
  /// The FLOP/s that the slowest GPU is expected to reach in bf16 or f16; 0 if there is no GPU.
  double half_precision_rate = 0;
  std::string symmetric_problem{};          ///< see executor::Description; "" if none is known
  int numa_nodes = 1;                       ///< NUMA nodes of the node with the fewest
  std::optional<units::Bytes> gpu_cache{};  ///< largest L2 cache of all GPUs; absent: unknown
  /// True if ranks of the launch share cores.
  bool oversubscribed = false;
  Nodes nodes = Nodes::known;
};

/// Collective: returns the facts of every rank, by rank. All ranks get all facts.
[[nodiscard]] std::vector<machine::MachineFacts> gather_facts(const comm::Communicator& world);

/// True if some of these ranks must share a core: they cannot each have a core of their own among
/// the physical cores that they are bound to, or a node has fewer physical cores, or fewer CPUs
/// allowed by a control group, than ranks. Unknown facts are ignored. `ranks` are indices into
/// `facts` and `node_of_rank`.
[[nodiscard]] bool share_cores(std::span<const int> ranks,
                               std::span<const machine::MachineFacts> facts,
                               std::span<const int> node_of_rank);

/// Collective: returns the site of the launch, the same on all ranks.
[[nodiscard]] Site make_site(const comm::Communicator& world, const executor::Description& device,
                             std::span<const machine::MachineFacts> facts);

/// Returns the site for which a plan for `config` is made: `site`, with additional ranks if the
/// plan has more than were started. --ranks-per-node determines which ranks share a node; without
/// it the nodes of additional ranks are unknown. Additional nodes are assumed to have as much
/// memory as the started node with the least.
[[nodiscard]] Site planned_site(Site site, const settings::RunConfig& config);

/// Returns the FLOP/s that a GPU of this compute capability (90 = 9.0; absent: unknown) is expected
/// to reach in bf16 or f16: about half of the peak in data sheets for dense matrices.
[[nodiscard]] double half_precision_rate(std::optional<int> compute_capability);

}  // namespace isoscale::runner::plan
