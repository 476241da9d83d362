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

/// Says if it is known which ranks share a node. It is unknown if the plan has ranks that were not
/// started and --ranks-per-node is not given.
enum class Nodes : std::uint8_t { known, unknown };

/// Says where the free memory was read. these_nodes: on the nodes of the plan. this_machine: only
/// on this machine; the nodes of the plan are assumed to have as much.
enum class MemoryOf : std::uint8_t { these_nodes, this_machine };

/// The ranks, nodes and devices for which a plan is made.
struct Site {
  int ranks = 1;
  std::vector<int> node_of_rank{0};
  std::vector<program::Precision> precisions;  ///< types that the executor computes in
  std::string device;                          ///< "host" or "cuda"
  /// For each rank, the number of the memory pool that it uses: its node's memory on the host, else
  /// that of its GPU. Ranks that share a GPU use the same pool.
  std::vector<int> pool_of_rank{0};
  /// For each pool, the least number of free bytes that one of its ranks reports; absent if a rank
  /// does not know it. If the vector is empty, points are not checked against memory.
  std::vector<std::optional<units::Bytes>> memory_free;
  MemoryOf memory_of = MemoryOf::these_nodes;
  /// The FLOP/s that the slowest GPU is expected to reach in bf16 or f16; 0 if there is no GPU.
  double half_precision_rate = 0;
  /// The reason why Transport::symmetric cannot be used; "" if none is known.
  std::string symmetric_problem{};
  int numa_nodes = 1;  ///< number of NUMA nodes; if nodes differ, the least number
  std::optional<units::Bytes> gpu_cache{};  ///< largest L2 cache of all GPUs; absent: unknown
  /// True if ranks of the launch share cores.
  bool oversubscribed = false;
  Nodes nodes = Nodes::known;
};

/// Collective: returns on every rank the facts about the machines of all ranks, by rank.
[[nodiscard]] std::vector<machine::MachineFacts> gather_facts(const comm::Communicator& world);

/// True if some of these ranks must share a core. This is so if they cannot each have their own
/// core among the physical cores that they are bound to, if more of them are on a node than it has
/// physical cores, or if more of them are on a node than the CPUs that a control group allows
/// there. Facts that are unknown are ignored. `ranks` are indices into `facts` and `node_of_rank`.
[[nodiscard]] bool share_cores(std::span<const int> ranks,
                               std::span<const machine::MachineFacts> facts,
                               std::span<const int> node_of_rank);

/// Collective: returns the site of the launch. It is the same on all ranks.
[[nodiscard]] Site make_site(const comm::Communicator& world, const executor::Description& device,
                             std::span<const machine::MachineFacts> facts);

/// Returns the site for which the plan of `config` is made. It is `site` itself, unless the plan
/// needs more ranks than were started, or --ranks-per-node is given. In these two cases the result
/// has all ranks that the plan needs. The option --ranks-per-node says how many of them share a
/// node; without it, this is unknown, and each rank is assumed to have memory of its own. If ranks
/// share GPUs, each node is assumed to have as many as the node of rank 0. All memory pools are
/// assumed to have as little free memory as the smallest pool of the started ranks.
[[nodiscard]] Site planned_site(Site site, const settings::RunConfig& config);

/// Returns the FLOP/s that a GPU is expected to reach in bf16 or f16: about half of the peak for
/// dense matrices in its data sheet. `compute_capability` is 90 for 9.0; absent: a small GPU.
[[nodiscard]] double half_precision_rate(std::optional<int> compute_capability);

}  // namespace isoscale::runner::plan
