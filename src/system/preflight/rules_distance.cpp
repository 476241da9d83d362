// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "system/preflight/adapters.hpp"
#include "system/preflight/job_view.hpp"
#include "system/preflight/rules.hpp"

/// How far GPUs are from the cores and adapters that serve them.
namespace isoscale::system {
namespace {

std::string no_distance(const JobFacts& job) {
  const bool any_port = std::ranges::any_of(job.nodes, has_up_port);
  if (job_gpus(job).empty()) return no_gpus(job, "NVML");
  return any_port ? "the PCI paths of GPUs or adapters are not known"
                  : "no InfiniBand or RoCE port is known to be up";
}

/// NCCL's default for GPUDirect RDMA is a path of PCIe switches alone (PXB).
bool is_behind_switches(std::size_t distance) {
  return distance_name(distance) == "one switch" || distance_name(distance) == "several switches";
}

/// Nodes of one GPU joined to its CPU by NVLink-C2C, and of one NUMA node, have no farther side.
Results judge_gpu_nic(const JobFacts& job) {
  Findings findings;
  std::string fine = "every GPU has an adapter on its own NUMA node";
  for (const JobGpu& one : job_gpus(job)) {
    if (!one.node->ports) continue;
    const auto nearest = nearest_ports(*one.gpu, *one.node);
    if (!findings.knows(nearest)) continue;
    if (!is_behind_switches(nearest->distance) && !is_joined_by_c2c(*one.gpu)) {
      fine =
          "every GPU has an adapter on its own NUMA node, some not behind PCIe switches alone: "
          "there NCCL uses GPUDirect RDMA only where NCCL_NET_GDR_LEVEL allows it (PHB), or on Arm";
    }
    if (distance_name(nearest->distance) != "system") continue;
    findings.warn(one.place(),
                  {.what = fmt::format("its nearest adapter, {}, is on another NUMA node",
                                       nearest->ports.front()->device),
                   .cost = "what it sends to other nodes crosses the links between NUMA nodes, and "
                           "NCCL uses GPUDirect RDMA over that distance only where "
                           "NCCL_NET_GDR_LEVEL allows it (SYS)",
                   .fix = "use the GPUs beside the adapter, or move the adapter; see nvidia-smi "
                          "topo -m"});
  }
  return std::move(findings).results(
      {.fine = std::move(fine), .unknown = no_distance(job), .how = "mount /sys"});
}

/// "GPU0-mlx5_0 GPU1-mlx5_1": the first of the nearest adapters that fewer GPUs before it use.
std::optional<std::string> rail_map(std::span<const JobGpu> gpus) {
  std::map<std::string, int> users;
  std::vector<std::string> rails;
  for (const JobGpu& one : gpus) {
    const auto nearest = nearest_ports(*one.gpu, *one.node);
    if (!nearest) return std::nullopt;
    const auto chosen = std::ranges::min_element(
        nearest->ports, {}, [&](const CheckedPort* port) { return users[port->device]; });
    ++users[(*chosen)->device];
    rails.push_back(fmt::format("GPU{}-{}", one.index, (*chosen)->device));
  }
  return fmt::format("{}", fmt::join(rails, " "));
}

Results judge_rail_map(const JobFacts& job) {
  Findings findings;
  std::vector<Observed> observed;
  const std::vector<JobGpu> gpus = job_gpus(job);
  for (auto begin = gpus.begin(); begin != gpus.end();) {
    const auto end =
        std::find_if(begin, gpus.end(), [&](const JobGpu& one) { return one.node != begin->node; });
    observed.push_back({.place = {.host = begin->node->host}, .value = rail_map({begin, end})});
    begin = end;
  }
  find_differences(findings, observed,
                   {.quantity = "nearest adapters",
                    .cost = "traffic that should stay on one rail crosses to another one through "
                            "the spine, or shares a port",
                    .fix = "compare slots and device names of the nodes: ibdev2netdev, nvidia-smi "
                           "topo -m"});
  std::string fine;
  for (const Observed& one : observed) {
    if (!one.value || !fine.empty()) continue;
    fine = fmt::format(
        "{} on {}", *one.value,
        observed.size() == 1 ? "the node" : fmt::format("all {} nodes", observed.size()));
  }
  return std::move(findings).results(
      {.fine = fine, .unknown = no_distance(job), .how = "mount /sys"});
}

/// Whether one of the CPUs is in the list.
bool share_any(const std::vector<int>& cpus, const std::vector<int>& others) {
  return std::ranges::any_of(
      cpus, [&](int cpu) { return std::ranges::find(others, cpu) != others.end(); });
}

Results judge_gpu_cores(const JobFacts& job) {
  Findings findings;
  for (const JobGpu& one : job_gpus(job)) {
    const auto& cpus_of = one.node->numa_cpus;
    for (const CheckedRank* rank : one.ranks) {
      const auto near =
          one.gpu->numa_node ? cpus_of.find(fmt::format("{}", *one.gpu->numa_node)) : cpus_of.end();
      if (near == cpus_of.end() || near->second.empty() || rank->cpus.empty()) {
        findings.miss();
        continue;
      }
      findings.know();
      if (share_any(rank->cpus, near->second)) continue;
      findings.warn(
          one.place(),
          {.what =
               fmt::format("none of its rank's CPUs is on its NUMA node, {}", *one.gpu->numa_node),
           .cost = "launches, copies and proxy threads cross the links between NUMA nodes",
           .fix = "bind ranks beside their GPUs: launch/bind.sh, with srun "
                  "--gpu-bind=none; nvidia-smi topo -m shows the places"});
    }
  }
  return std::move(findings).results(
      {.fine = "every rank has CPUs on the NUMA node of its GPU",
       .unknown = job_gpus(job).empty() ? no_gpus(job, "NVML")
                                        : "the NUMA nodes of GPUs or ranks are not known",
       .how = "mount /sys"});
}

constexpr std::array distance_table{
    Check{"gpu-nic", "whether the nearest adapter of a GPU is on its NUMA node", judge_gpu_nic},
    Check{"rail-map", "which adapter is nearest to which GPU, alike on all nodes", judge_rail_map},
    Check{"gpu-cores", "whether ranks run on the NUMA node of their GPU", judge_gpu_cores},
};

}  // namespace

std::span<const Check> distance_checks() { return distance_table; }

}  // namespace isoscale::system
