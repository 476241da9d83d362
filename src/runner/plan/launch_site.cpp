// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/plan/launch_site.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "preflight/facts_json.hpp"

namespace isoscale::machine {

ISOSCALE_FACTS(MachineFacts, host, cpu_model, sockets, cores, numa_nodes, memory_total,
               memory_available, bound_cpus, bound_core_ids, os, cpu_quota)

}  // namespace isoscale::machine

namespace isoscale::runner::plan {
namespace {

using nlohmann::json;

/// Collective: sets the memory pools of all ranks and their free bytes.
void add_memory(const comm::Communicator& world, const executor::Description& device, Site& site) {
  const std::vector<std::string> names = world.all_gather(device.memory_pool);
  const std::vector<std::optional<units::Bytes>> free = world.all_gather(device.memory_free);
  site.pool_of_rank.clear();
  std::map<std::pair<int, std::string>, int> pools;  // by node and name
  for (std::size_t rank = 0; rank < free.size(); ++rank) {
    const auto [pool, is_new] =
        pools.try_emplace({site.node_of_rank[rank], names[rank]}, static_cast<int>(pools.size()));
    site.pool_of_rank.push_back(pool->second);
    if (is_new) site.memory_free.push_back(free[rank]);
    auto& least = site.memory_free[static_cast<std::size_t>(pool->second)];
    least = std::min(least, free[rank]);  // an absent value is less than any other
  }
}

}  // namespace

std::vector<machine::MachineFacts> gather_facts(const comm::Communicator& world) {
  std::vector<machine::MachineFacts> facts;
  for (const std::string& text :
       world.all_gather(preflight::facts_text(machine::machine_facts()))) {
    preflight::read_facts(facts.emplace_back(), json::parse(text));
  }
  return facts;
}

bool share_cores(std::span<const int> ranks, std::span<const machine::MachineFacts> facts,
                 std::span<const int> node_of_rank) {
  std::map<int, std::vector<const machine::MachineFacts*>> of_node;
  for (const int rank : ranks) {
    const auto r = static_cast<std::size_t>(rank);
    of_node[node_of_rank[r]].push_back(&facts[r]);
  }
  return std::ranges::any_of(of_node, [](const auto& node) {
    const auto count = static_cast<double>(node.second.size());
    std::vector<std::vector<int>> bound;  // the physical cores of each rank whose binding is known
    for (const machine::MachineFacts* const rank : node.second) {
      const bool too_many =
          (rank->cores && count > *rank->cores) || (rank->cpu_quota && count > *rank->cpu_quota);
      if (too_many) return true;
      if (!rank->bound_core_ids.empty()) bound.push_back(rank->bound_core_ids);
    }
    return machine::count_with_own_core(bound) < bound.size();
  });
}

Site make_site(const comm::Communicator& world, const executor::Description& device,
               std::span<const machine::MachineFacts> facts) {
  Site site{.ranks = world.size(),
            .node_of_rank = comm::node_of_rank(world),
            .precisions = device.precisions,
            .device = device.name,
            .memory_free = {},
            .symmetric_problem = device.symmetric_problem,
            .oversubscribed = false};
  add_memory(world, device, site);
  std::vector<int> everyone(static_cast<std::size_t>(world.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  const double slowest = device.name == "cuda" ? half_precision_rate(device.compute_capability) : 0;
  site.half_precision_rate = -world.all_max(-slowest);
  const auto cache = device.facts_number.find("gpu_l2_cache");
  const double largest = world.all_max(cache == device.facts_number.end() ? 0 : cache->second);
  if (largest > 0) site.gpu_cache = units::Bytes{static_cast<std::uint64_t>(largest)};
  site.oversubscribed = share_cores(everyone, facts, site.node_of_rank);
  if (!facts.empty()) site.numa_nodes = facts.front().numa_nodes.value_or(1);
  for (const machine::MachineFacts& of_rank : facts) {
    site.numa_nodes = std::min(site.numa_nodes, of_rank.numa_nodes.value_or(1));
  }
  return site;
}

Site planned_site(Site site, const settings::RunConfig& config) {
  const int planned = config.ranks.empty() ? site.ranks : config.ranks.back();
  if (planned <= site.ranks && !config.ranks_per_node) return site;
  site.nodes = config.ranks_per_node ? Nodes::known : Nodes::unknown;
  const int node_ranks = config.ranks_per_node.value_or(1);
  std::set<int> first_pools;  // memory pools of the ranks on rank 0's node
  for (std::size_t rank = 0; rank < site.pool_of_rank.size(); ++rank) {
    if (site.node_of_rank[rank] == site.node_of_rank[0])
      first_pools.insert(site.pool_of_rank[rank]);
  }
  const bool shares = site.device == "host" || site.memory_free.size() < site.pool_of_rank.size();
  const int node_pools = shares ? static_cast<int>(first_pools.size()) : node_ranks;
  site.ranks = std::max(site.ranks, planned);
  site.node_of_rank.resize(static_cast<std::size_t>(site.ranks), site.node_of_rank.back());
  if (config.ranks_per_node) {
    for (int rank = 0; rank < site.ranks; ++rank) {
      site.node_of_rank[static_cast<std::size_t>(rank)] = rank / *config.ranks_per_node;
    }
  }
  site.pool_of_rank.clear();
  for (int rank = 0; rank < site.ranks; ++rank) {
    site.pool_of_rank.push_back(rank / node_ranks * node_pools + rank % node_ranks % node_pools);
  }
  std::optional<units::Bytes> least;
  for (const auto& bytes : site.memory_free) {
    if (bytes && (!least || *bytes < *least)) least = bytes;
  }
  const auto pools = static_cast<std::size_t>(std::ranges::max(site.pool_of_rank)) + 1;
  site.memory_free.assign(pools, least);
  site.memory_of = MemoryOf::this_machine;
  return site;
}

double half_precision_rate(std::optional<int> compute_capability) {
  // These are compute capabilities: 80 means 8.0.
  constexpr int a100 = 80, hopper = 90, blackwell = 100, consumer = 120;
  if (!compute_capability || *compute_capability >= consumer || *compute_capability < a100) {
    return 60e12;
  }
  if (compute_capability >= blackwell) return 900e12;
  if (compute_capability >= hopper) return 480e12;
  return compute_capability == a100 ? 150e12 : 60e12;
}

}  // namespace isoscale::runner::plan
