// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "preflight/job_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "preflight/facts_json.hpp"

namespace isoscale::machine {

ISOSCALE_FACTS(GpuFacts, uuid, pci_bus_id, name, driver, vbios, compute_mode, memory, memory_used,
               sm_clock, sm_clock_max, sm_clock_application, memory_clock_max, power_limit,
               power_limit_default, throttle_reasons, ecc, mig, persistence, ecc_uncorrected,
               remapped_rows, remap_pending, remap_failed, retired_pages, xids, processes,
               nvlinks_active, nvlinks_inactive, nvlink_peers, fabric, fabric_state,
               pcie_generation, pcie_generation_max, pcie_width, pcie_width_max, numa_node,
               pci_path)

}  // namespace isoscale::machine

namespace isoscale::preflight {

ISOSCALE_FACTS(CheckedPeers, i, j, peer_access, link)
ISOSCALE_FACTS(CheckedPort, device, port, link_layer, state, physical_state, rate, link_downed,
               symbol_errors, pcie_generation, pcie_generation_max, pcie_width, pcie_width_max,
               numa_node, pci_path)
ISOSCALE_FACTS(CheckedNode, node, host, cpu_model, os, cores, cpu_quota, memory, shm_size, shm_free,
               numa_cpus, governors, frequency_driver, energy_preferences, iommu_translates, acs,
               nvidia_peermem, gdrcopy, dmabuf, nccl_plugins, gpus, gpus_lost, peers, ports)
ISOSCALE_FACTS(CheckedNeighbour, rank, bandwidth)
ISOSCALE_FACTS(CheckedRank, rank, node, local_rank, pid, cpus, cores, gpu, visible_gpus,
               blas_threads, locked_memory_limit, locked_memory_unlimited, versions, environment,
               missing_files, launcher, gemm_rate, neighbours)
ISOSCALE_FACTS(JobFacts, device, share_gpu, world, device_problem, device_reason, sniff_skipped,
               nodes, ranks)

namespace {

bool is_same(const GpuFacts& a, const GpuFacts& b) {
  if (!a.uuid.empty() && !b.uuid.empty()) return a.uuid == b.uuid;
  return !a.pci_bus_id.empty() && a.pci_bus_id == b.pci_bus_id;
}

/// Adds the facts of a GPU that another rank of the node reported. If the node had only facts from
/// the PCI bus about this GPU, the new facts replace them, except for the Xids (driver error
/// codes), which only the node's first rank reads, from the kernel's log.
void add_gpu(CheckedNode& node, GpuFacts seen) {
  if (!node.gpus) node.gpus.emplace();
  const auto known =
      std::ranges::find_if(*node.gpus, [&](const GpuFacts& gpu) { return is_same(gpu, seen); });
  if (known == node.gpus->end()) {
    node.gpus->push_back(std::move(seen));
  } else if (known->uuid.empty()) {
    if (!seen.xids) seen.xids = std::move(known->xids);
    *known = std::move(seen);
  }
}

/// Sets the link of each pair of GPUs that NVLinks join. This needs the facts of both GPUs, which
/// different ranks may have reported.
void find_nvlinks(CheckedNode& node) {
  if (!node.gpus) return;
  for (CheckedPeers& peers : node.peers) {
    const auto i = static_cast<std::size_t>(peers.i), j = static_cast<std::size_t>(peers.j);
    if (i >= node.gpus->size() || j >= node.gpus->size()) continue;
    if (joined_by_nvlinks((*node.gpus)[i], (*node.gpus)[j])) peers.link = "NVLink";
  }
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): nodes are moved out of it
std::vector<CheckedNode> merge_nodes(std::vector<CheckedNode> reported) {
  std::map<int, CheckedNode> nodes;
  for (CheckedNode& node : reported) {
    const auto [known, is_new] = nodes.try_emplace(node.node, std::move(node));
    if (is_new) continue;  // otherwise `node` was not moved
    for (GpuFacts& gpu : node.gpus.value_or(std::vector<GpuFacts>{})) {
      add_gpu(known->second, std::move(gpu));
    }
  }
  std::vector<CheckedNode> in_order;
  for (auto& [index, node] : nodes) {
    find_nvlinks(node);
    in_order.push_back(std::move(node));
  }
  return in_order;
}

}  // namespace

bool joined_by_nvlinks(const GpuFacts& a, const GpuFacts& b) {
  if (!a.nvlink_peers || !b.nvlink_peers) return false;
  return std::ranges::any_of(*a.nvlink_peers, [&](const std::string& peer) {
    return peer == b.pci_bus_id ||
           std::ranges::find(*b.nvlink_peers, peer) != b.nvlink_peers->end();
  });
}

std::string to_json(const JobFacts& facts) { return facts_text(facts); }

JobFacts job_facts_from_json(std::string_view text) try {
  JobFacts facts;
  read_facts(facts, nlohmann::json::parse(text));
  return facts;
} catch (const nlohmann::json::exception& failure) {
  throw base::Error(fmt::format("job facts: {}", failure.what()));
}

JobFacts merge(std::vector<JobFacts> parts) {
  if (parts.empty()) return {};
  std::vector<CheckedNode> nodes;
  std::vector<CheckedRank> ranks;
  for (JobFacts& part : parts) {
    std::ranges::move(part.nodes, std::back_inserter(nodes));
    std::ranges::move(part.ranks, std::back_inserter(ranks));
  }
  std::ranges::stable_sort(ranks, {}, &CheckedRank::rank);
  const auto repeated = std::ranges::unique(ranks, {}, &CheckedRank::rank);
  ranks.erase(repeated.begin(), repeated.end());
  JobFacts job = std::move(parts.front());
  job.nodes = merge_nodes(std::move(nodes));
  job.ranks = std::move(ranks);
  return job;
}

}  // namespace isoscale::preflight
