// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "system/preflight/collect.hpp"

#include <sys/statvfs.h>

#include <utility>
#include <vector>

#include "system/preflight/gpus.hpp"
#include "system/preflight/kernel_log.hpp"
#include "system/preflight/node_settings.hpp"
#include "system/preflight/pci.hpp"

namespace isoscale::system {
namespace {

namespace fs = std::filesystem;

void add_machine(CheckedNode& node, const MachineFacts& machine) {
  node.host = machine.host;
  node.cpu_model = machine.cpu_model;
  node.os = machine.os;
  node.cores = machine.cores;
  node.cpu_quota = machine.cpu_quota;
  if (machine.memory_total) node.memory = static_cast<double>(machine.memory_total->value());
}

void add_shared_memory(CheckedNode& node, const fs::path& root) {
  struct statvfs about {};
  if (statvfs((root / "dev/shm").c_str(), &about) != 0) return;
  const auto block = static_cast<double>(about.f_frsize);
  node.shm_size = block * static_cast<double>(about.f_blocks);
  node.shm_free = block * static_cast<double>(about.f_bavail);
}

/// No message of the log names a GPU that has none.
void add_xids(std::vector<CheckedGpu>& gpus, const fs::path& root) {
  if (gpus.empty()) return;
  const std::optional<std::string> log = kernel_log(root);
  if (!log) return;
  const std::map<std::string, std::vector<int>> xids = xids_in(*log);
  for (CheckedGpu& gpu : gpus) {
    if (gpu.pci_bus_id.empty()) continue;  // the log would not name it
    const auto found = xids.find(gpu.pci_bus_id);
    gpu.xids = found == xids.end() ? std::vector<int>{} : found->second;
  }
}

const nvml::Functions* functions_of(const FactSources& sources) {
  return sources.nvml == nullptr ? nullptr : sources.nvml->functions();
}

void add_gpus(CheckedNode& node, const FactSources& sources) {
  const nvml::Functions* const nvml = functions_of(sources);
  FoundGpus found = find_gpus(nvml, sources.root);
  node.peers = find_peers(nvml, found);
  if (found.gpus) add_xids(*found.gpus, sources.root);
  node.gpus = std::move(found.gpus);
  node.gpus_lost = found.lost;
}

/// What lies on the way of data between devices.
void add_paths(CheckedNode& node, const FactSources& sources) {
  std::vector<fs::path> functions;
  for (const CheckedGpu& gpu : node.gpus.value_or(std::vector<CheckedGpu>{})) {
    if (gpu.pci_bus_id.empty()) continue;
    functions.push_back(sources.root / "sys/bus/pci/devices" / gpu.pci_bus_id);
  }
  node.acs = bridges_redirect_peers(functions);
  for (fs::path& adapter : adapter_functions(sources.root)) {
    functions.push_back(std::move(adapter));
  }
  node.iommu_translates = iommu_translates(sources.root, functions);
  node.nvidia_peermem = has_module(sources.root, {"nvidia_peermem", "nv_peer_mem"});
  node.gdrcopy = has_module(sources.root, {"gdrdrv"});
  node.dmabuf = has_dmabuf(sources.root);
}

}  // namespace

std::optional<CheckedGpu> collect_gpu(const FactSources& sources, std::string_view uuid) {
  const nvml::Functions* const nvml = functions_of(sources);
  return nvml == nullptr ? std::nullopt : find_gpu(*nvml, uuid, sources.root);
}

std::optional<std::vector<std::string>> collect_visible_gpus(const FactSources& sources) {
  const nvml::Functions* const nvml = functions_of(sources);
  return nvml == nullptr ? std::nullopt : visible_gpus(*nvml);
}

CheckedNode collect_node(const FactSources& sources, const MachineFacts& machine) {
  CheckedNode node;
  add_machine(node, machine);
  add_shared_memory(node, sources.root);
  node.numa_cpus = numa_cpus(sources.root);
  node.governors = governors(sources.root);
  node.frequency_driver = frequency_driver(sources.root);
  node.energy_preferences = energy_preferences(sources.root);
  add_gpus(node, sources);
  add_paths(node, sources);
  node.ports = find_ports(sources.root);
  node.nccl_plugins = nccl_plugins(sources.root, sources.environment);
  return node;
}

}  // namespace isoscale::system
