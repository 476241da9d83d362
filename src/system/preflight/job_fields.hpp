// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "system/preflight/job_facts.hpp"

/// The fields of job facts by name, once for writing and reading: fields(&facts, visit) calls
/// visit(name, pointer to member) for each.
namespace isoscale::system {

template <class Visit>
void fields(const CheckedGpu*, Visit visit) {
  visit("uuid", &CheckedGpu::uuid);
  visit("pci_bus_id", &CheckedGpu::pci_bus_id);
  visit("name", &CheckedGpu::name);
  visit("driver", &CheckedGpu::driver);
  visit("vbios", &CheckedGpu::vbios);
  visit("compute_mode", &CheckedGpu::compute_mode);
  visit("memory", &CheckedGpu::memory);
  visit("memory_used", &CheckedGpu::memory_used);
  visit("sm_clock", &CheckedGpu::sm_clock);
  visit("sm_clock_max", &CheckedGpu::sm_clock_max);
  visit("sm_clock_application", &CheckedGpu::sm_clock_application);
  visit("memory_clock_max", &CheckedGpu::memory_clock_max);
  visit("power_limit", &CheckedGpu::power_limit);
  visit("power_limit_default", &CheckedGpu::power_limit_default);
  visit("throttle_reasons", &CheckedGpu::throttle_reasons);
  visit("ecc", &CheckedGpu::ecc);
  visit("mig", &CheckedGpu::mig);
  visit("persistence", &CheckedGpu::persistence);
  visit("ecc_uncorrected", &CheckedGpu::ecc_uncorrected);
  visit("remapped_rows", &CheckedGpu::remapped_rows);
  visit("remap_pending", &CheckedGpu::remap_pending);
  visit("remap_failed", &CheckedGpu::remap_failed);
  visit("retired_pages", &CheckedGpu::retired_pages);
  visit("xids", &CheckedGpu::xids);
  visit("processes", &CheckedGpu::processes);
  visit("nvlinks_active", &CheckedGpu::nvlinks_active);
  visit("nvlinks_inactive", &CheckedGpu::nvlinks_inactive);
  visit("nvlink_peers", &CheckedGpu::nvlink_peers);
  visit("fabric", &CheckedGpu::fabric);
  visit("fabric_state", &CheckedGpu::fabric_state);
  visit("pcie_generation", &CheckedGpu::pcie_generation);
  visit("pcie_generation_max", &CheckedGpu::pcie_generation_max);
  visit("pcie_width", &CheckedGpu::pcie_width);
  visit("pcie_width_max", &CheckedGpu::pcie_width_max);
  visit("numa_node", &CheckedGpu::numa_node);
  visit("pci_path", &CheckedGpu::pci_path);
}

template <class Visit>
void fields(const CheckedPeers*, Visit visit) {
  visit("i", &CheckedPeers::i);
  visit("j", &CheckedPeers::j);
  visit("peer_access", &CheckedPeers::peer_access);
  visit("link", &CheckedPeers::link);
}

template <class Visit>
void fields(const CheckedPort*, Visit visit) {
  visit("device", &CheckedPort::device);
  visit("port", &CheckedPort::port);
  visit("link_layer", &CheckedPort::link_layer);
  visit("state", &CheckedPort::state);
  visit("physical_state", &CheckedPort::physical_state);
  visit("rate", &CheckedPort::rate);
  visit("link_downed", &CheckedPort::link_downed);
  visit("symbol_errors", &CheckedPort::symbol_errors);
  visit("pcie_generation", &CheckedPort::pcie_generation);
  visit("pcie_generation_max", &CheckedPort::pcie_generation_max);
  visit("pcie_width", &CheckedPort::pcie_width);
  visit("pcie_width_max", &CheckedPort::pcie_width_max);
  visit("numa_node", &CheckedPort::numa_node);
  visit("pci_path", &CheckedPort::pci_path);
}

template <class Visit>
void fields(const CheckedNode*, Visit visit) {
  visit("node", &CheckedNode::node);
  visit("host", &CheckedNode::host);
  visit("cpu_model", &CheckedNode::cpu_model);
  visit("os", &CheckedNode::os);
  visit("cores", &CheckedNode::cores);
  visit("cpu_quota", &CheckedNode::cpu_quota);
  visit("memory", &CheckedNode::memory);
  visit("shm_size", &CheckedNode::shm_size);
  visit("shm_free", &CheckedNode::shm_free);
  visit("numa_cpus", &CheckedNode::numa_cpus);
  visit("governors", &CheckedNode::governors);
  visit("frequency_driver", &CheckedNode::frequency_driver);
  visit("energy_preferences", &CheckedNode::energy_preferences);
  visit("iommu_translates", &CheckedNode::iommu_translates);
  visit("acs", &CheckedNode::acs);
  visit("nvidia_peermem", &CheckedNode::nvidia_peermem);
  visit("gdrcopy", &CheckedNode::gdrcopy);
  visit("dmabuf", &CheckedNode::dmabuf);
  visit("nccl_plugins", &CheckedNode::nccl_plugins);
  visit("gpus", &CheckedNode::gpus);
  visit("gpus_lost", &CheckedNode::gpus_lost);
  visit("peers", &CheckedNode::peers);
  visit("ports", &CheckedNode::ports);
}

template <class Visit>
void fields(const CheckedNeighbour*, Visit visit) {
  visit("rank", &CheckedNeighbour::rank);
  visit("bandwidth", &CheckedNeighbour::bandwidth);
}

template <class Visit>
void fields(const CheckedRank*, Visit visit) {
  visit("rank", &CheckedRank::rank);
  visit("node", &CheckedRank::node);
  visit("local_rank", &CheckedRank::local_rank);
  visit("pid", &CheckedRank::pid);
  visit("cpus", &CheckedRank::cpus);
  visit("cores", &CheckedRank::cores);
  visit("gpu", &CheckedRank::gpu);
  visit("visible_gpus", &CheckedRank::visible_gpus);
  visit("blas_threads", &CheckedRank::blas_threads);
  visit("locked_memory_limit", &CheckedRank::locked_memory_limit);
  visit("locked_memory_unlimited", &CheckedRank::locked_memory_unlimited);
  visit("versions", &CheckedRank::versions);
  visit("environment", &CheckedRank::environment);
  visit("missing_files", &CheckedRank::missing_files);
  visit("launcher", &CheckedRank::launcher);
  visit("gemm_rate", &CheckedRank::gemm_rate);
  visit("neighbours", &CheckedRank::neighbours);
}

template <class Visit>
void fields(const JobFacts*, Visit visit) {
  visit("device", &JobFacts::device);
  visit("share_gpu", &JobFacts::share_gpu);
  visit("world", &JobFacts::world);
  visit("device_problem", &JobFacts::device_problem);
  visit("device_reason", &JobFacts::device_reason);
  visit("sniff_skipped", &JobFacts::sniff_skipped);
  visit("nodes", &JobFacts::nodes);
  visit("ranks", &JobFacts::ranks);
}

}  // namespace isoscale::system
