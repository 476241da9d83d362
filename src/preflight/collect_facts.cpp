// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "preflight/collect_facts.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "machine/kernel_files.hpp"

namespace isoscale::preflight {
namespace {

namespace fs = std::filesystem;
using machine::MachineFacts;

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

/// Adds to each GPU the Xids (error codes of NVIDIA's driver) that the kernel's log reports for it.
/// A GPU without such messages gets an empty list.
void add_xids(std::vector<GpuFacts>& gpus, const fs::path& root) {
  if (gpus.empty()) return;
  const std::optional<std::string> log = kernel_log(root);
  if (!log) return;
  const std::map<std::string, std::vector<int>> xids = xids_in(*log);
  for (GpuFacts& gpu : gpus) {
    if (gpu.pci_bus_id.empty()) continue;  // the log names GPUs by bus id
    const auto found = xids.find(gpu.pci_bus_id);
    gpu.xids = found == xids.end() ? std::vector<int>{} : found->second;
  }
}

void add_gpus(CheckedNode& node, const FactSources& sources) {
  const nvml::Functions* const nvml = sources.functions();
  FoundGpus found = find_gpus(nvml, sources.root);
  node.peers = find_peers(nvml, found);
  if (found.gpus) add_xids(*found.gpus, sources.root);
  node.gpus = std::move(found.gpus);
  node.gpus_lost = found.lost;
}

/// Adds facts about the paths that data takes between devices: whether access control services
/// (ACS) redirect it, whether an IOMMU translates addresses, and whether GPUDirect RDMA is
/// supported.
void add_paths(CheckedNode& node, const FactSources& sources) {
  std::vector<fs::path> functions;
  for (const GpuFacts& gpu : node.gpus.value_or(std::vector<GpuFacts>{})) {
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

/// Reads the limit of locked memory from proc/self/limits: "Max locked memory   8388608   8388608
/// bytes". The first of the two numbers is the limit in force.
void add_locked_memory(CheckedRank& rank, const fs::path& root) {
  constexpr std::string_view line = "Max locked memory", no_limit = "unlimited";
  const std::optional<std::string> limits =
      machine::read_file((root / "proc/self/limits").string());
  const std::size_t at = limits ? limits->find(line) : std::string::npos;
  if (at == std::string::npos) return;
  std::string_view value = std::string_view{*limits}.substr(at + line.size());
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  rank.locked_memory_unlimited = value.starts_with(no_limit);
  if (!rank.locked_memory_unlimited) rank.locked_memory_limit = machine::leading_number(value);
}

/// Returns the names of those NCCL variables that hold the path of a file which does not exist.
std::vector<std::string> missing_files(const FactSources& sources) {
  constexpr std::array<const char*, 4> names{"NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "NCCL_CONF_FILE",
                                             "NCCL_NET_PLUGIN"};
  std::vector<std::string> missing;
  for (const char* const name : names) {
    const std::optional<std::string> file = sources.environment(name);
    const bool is_name = std::string_view{name} == "NCCL_NET_PLUGIN" &&
                         file.value_or("").find('/') == std::string::npos;
    if (is_name) continue;  // the name of a library, which the loader searches for
    std::error_code failure;
    if (file && !file->empty() && !fs::exists(below(sources.root, *file), failure)) {
      missing.emplace_back(name);
    }
  }
  return missing;
}

}  // namespace

CheckedNode collect_node(const FactSources& sources, const MachineFacts& machine) {
  CheckedNode node;
  add_machine(node, machine);
  add_shared_memory(node, sources.root);
  node.numa_cpus = machine.numa_cpus;
  node.governors = cpus_by(sources.root, "cpufreq/scaling_governor");
  if (const auto drivers = cpus_by(sources.root, "cpufreq/scaling_driver")) {
    node.frequency_driver = drivers->begin()->first;
  }
  node.energy_preferences = cpus_by(sources.root, "cpufreq/energy_performance_preference");
  add_gpus(node, sources);
  add_paths(node, sources);
  node.ports = find_ports(sources.root);
  node.nccl_plugins = nccl_plugins(sources.root, sources.environment);
  return node;
}

CheckedRank collect_rank(const FactSources& sources, const MachineFacts& machine) {
  CheckedRank rank;
  rank.pid = getpid();
  rank.cpus = machine.bound_cpus;
  rank.cores = machine.bound_core_ids;
  add_locked_memory(rank, sources.root);
  for (auto& [name, value] : machine::recorded_settings(sources.environment)) {
    rank.environment.emplace(name, std::move(value));
  }
  rank.missing_files = missing_files(sources);
  rank.launcher = machine::launcher_numbers(sources.environment);
  return rank;
}

}  // namespace isoscale::preflight
