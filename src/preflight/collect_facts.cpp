// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "preflight/collect_facts.hpp"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <system_error>
#include <utility>

#include "base/folder_entries.hpp"
#include "base/text.hpp"
#include "machine/procfs_and_cgroups.hpp"

namespace isoscale::preflight {
namespace {

namespace fs = std::filesystem;
using machine::leading_number;
using machine::line_in;
using machine::MachineFacts;
using machine::read_file;

/// True for the sysfs folder of a CPU, such as "cpu3", but not for other names such as "cpufreq".
bool is_cpu(const fs::path& folder) {
  constexpr std::string_view prefix = "cpu";
  const std::string name = folder.filename().string();
  return name.starts_with(prefix) && base::number_in<unsigned>(name.substr(prefix.size()));
}

bool is_folder(const fs::path& path) {
  std::error_code failure;
  return fs::is_directory(path, failure);
}

/// Reads a file that each CPU has in its sysfs folder, such as "cpufreq/scaling_governor". Returns
/// the number of CPUs for each content of the file.
std::optional<std::map<std::string, int>> cpus_by(const fs::path& root, const char* file) {
  std::map<std::string, int> cpus;
  for (const fs::path& cpu : base::entries_of(root / "sys/devices/system/cpu", "cpu")) {
    if (!is_cpu(cpu)) continue;
    if (const auto value = line_in(cpu / file)) ++cpus[*value];
  }
  return cpus.empty() ? std::nullopt : std::optional{std::move(cpus)};
}

/// Returns the types ("DMA", "DMA-FQ", "identity", ...) of the IOMMU groups that `functions`
/// (folders of PCI functions) belong to, or of all groups if none of them belongs to a group.
std::vector<std::string> group_types(const fs::path& root, const std::vector<fs::path>& functions) {
  std::vector<std::string> types;
  for (const fs::path& function : functions) {
    if (auto type = line_in(function / "iommu_group/type")) types.push_back(*std::move(type));
  }
  if (!types.empty()) return types;
  for (const fs::path& group : base::entries_of(root / "sys/kernel/iommu_groups")) {
    if (auto type = line_in(group / "type")) types.push_back(*std::move(type));
  }
  return types;
}

/// True if the kernel was started with an option for IOMMU passthrough (addresses are not
/// translated).
bool passthrough_asked(const fs::path& root) {
  const std::string line = fmt::format(" {} ", line_in(root / "proc/cmdline").value_or(""));
  return line.find(" iommu=pt ") != std::string::npos ||
         line.find(" iommu.passthrough=1 ") != std::string::npos;
}

/// True if an IOMMU translates the addresses that devices access. `functions` are folders of PCI
/// functions. Their IOMMU groups are examined, or all groups of the node if none of the functions
/// is in a group.
std::optional<bool> iommu_translates(const fs::path& root, const std::vector<fs::path>& functions) {
  const std::vector<std::string> types = group_types(root, functions);
  if (!types.empty()) {
    return std::ranges::any_of(types,
                               [](const std::string& type) { return type.starts_with("DMA"); });
  }
  // Kernels before 5.11 do not show the type of an IOMMU group. Then only two things prove that no
  // addresses are translated: that there is no IOMMU, or that passthrough was asked for.
  const fs::path units = root / "sys/class/iommu";
  const bool none = is_folder(units) && base::entries_of(units).empty();
  return none || passthrough_asked(root) ? std::optional{false} : std::nullopt;
}

/// True if at least one of these kernel modules is loaded.
std::optional<bool> has_module(const fs::path& root,
                               std::initializer_list<std::string_view> names) {
  const fs::path modules = root / "sys/module";
  if (!is_folder(modules)) return std::nullopt;
  return std::ranges::any_of(names,
                             [&](std::string_view name) { return is_folder(modules / name); });
}

/// True if GPU memory can be exported as dma-buf, which needs Linux 5.12 or later and NVIDIA's open
/// kernel modules (NVIDIA, CUDA Driver API, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED; GPUDirect RDMA
/// manual).
std::optional<bool> has_dmabuf(const fs::path& root) {
  constexpr std::pair first_kernel{5.0, 12.0};
  const std::optional<std::string> driver = line_in(root / "proc/driver/nvidia/version");
  const std::optional<std::string> release = line_in(root / "proc/sys/kernel/osrelease");
  if (!driver || !release) return std::nullopt;
  const std::vector<std::string_view> parts = base::split(*release, '.');
  if (parts.size() < 2) return std::nullopt;
  const std::optional<double> major = leading_number(parts[0]), minor = leading_number(parts[1]);
  if (!major || !minor) return std::nullopt;
  return std::pair{*major, *minor} >= first_kernel &&
         driver->find("Open Kernel Module") != std::string::npos;
}

constexpr std::string_view adapters_folder = "sys/class/infiniband";

/// Returns the state in a port's file `state` or `phys_state`: "ACTIVE" for "4: ACTIVE".
std::optional<std::string> state_in(const fs::path& file) {
  std::optional<std::string> line = line_in(file);
  if (!line) return std::nullopt;
  const std::size_t colon = line->find(": ");
  if (colon != std::string::npos) line->erase(0, colon + 2);
  return line;
}

/// Returns the rate in a port's file `rate`, in bit/s: 400e9 for "400 Gb/sec (4X NDR)".
std::optional<double> rate_in(const fs::path& file) {
  constexpr double giga = 1e9;
  const std::optional<std::string> line = line_in(file);
  if (!line || line->find(" Gb/sec") == std::string::npos) return std::nullopt;
  const std::optional<double> rate = leading_number(*line);
  return rate ? std::optional{*rate * giga} : std::nullopt;
}

std::optional<std::int64_t> count_in(const fs::path& file) {
  const std::optional<double> count = machine::number_in(file);
  return count ? std::optional{static_cast<std::int64_t>(*count)} : std::nullopt;
}

CheckedPort read_port(std::string device, const fs::path& folder, const machine::PciFacts& pci) {
  CheckedPort port;
  static_cast<machine::PciFacts&>(port) = pci;
  port.device = std::move(device);
  port.link_layer = line_in(folder / "link_layer");
  port.state = state_in(folder / "state");
  port.physical_state = state_in(folder / "phys_state");
  port.rate = rate_in(folder / "rate");
  port.link_downed = count_in(folder / "counters/link_downed");
  port.symbol_errors = count_in(folder / "counters/symbol_error");
  return port;
}

/// Returns the ports of the InfiniBand and RoCE adapters, sorted by adapter name and port number.
std::optional<std::vector<CheckedPort>> find_ports(const fs::path& root) {
  // Without the folder sys/class nothing is known about ports. If this folder exists but has no
  // folder of adapters, the kernel does not support such adapters, so the node has no port.
  if (!is_folder(root / "sys/class")) return std::nullopt;
  std::vector<CheckedPort> ports;
  for (const fs::path& adapter : base::entries_of(root / adapters_folder)) {
    const machine::PciFacts pci = pci_facts(adapter / "device");
    for (const fs::path& folder : base::entries_of(adapter / "ports")) {
      const auto number = base::number_in<int>(folder.filename().string());
      if (!number) continue;
      ports.push_back(read_port(adapter.filename().string(), folder, pci));
      ports.back().port = *number;
    }
  }
  std::ranges::stable_sort(ports, [](const CheckedPort& a, const CheckedPort& b) {
    return std::pair{a.device, a.port} < std::pair{b.device, b.port};
  });
  return ports;
}

/// Returns `file` with `root` in front if `file` is an absolute path; else `file` itself.
fs::path below(const fs::path& root, const fs::path& file) {
  return file.is_absolute() ? root / file.relative_path() : file;
}

bool is_plugin(std::string_view name) {
  constexpr std::array<std::string_view, 5> prefixes{"libnccl-net", "libnccl-tuner",
                                                     "libnccl-profiler", "libnccl-env", "libsharp"};
  return name.find(".so") != std::string_view::npos &&
         std::ranges::any_of(prefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// Returns the file names of the NCCL plugins and SHARP libraries that are installed, in
/// alphabetical order, each once. It searches LD_LIBRARY_PATH and the loader's cache, and loads no
/// library.
std::optional<std::vector<std::string>> nccl_plugins(const fs::path& root,
                                                     const machine::Lookup& environment) {
  std::set<std::string> names;
  bool searched = false;
  const std::string folders = environment("LD_LIBRARY_PATH").value_or("");
  for (const std::string_view folder : base::split(folders, ':')) {
    if (folder.empty() || !is_folder(below(root, folder))) continue;
    searched = true;
    for (const fs::path& file : base::entries_of(below(root, folder), "lib")) {
      if (is_plugin(file.filename().string())) names.insert(file.filename().string());
    }
  }
  // The cache holds names and paths of libraries, each ended by a zero byte (ldconfig(8)).
  if (const auto cache = read_file((root / "etc/ld.so.cache").string())) {
    searched = true;
    for (const std::string_view text : base::split(*cache, '\0')) {
      const std::size_t slash = text.rfind('/');
      if (slash == std::string_view::npos) continue;
      if (is_plugin(text.substr(slash + 1))) names.emplace(text.substr(slash + 1));
    }
  }
  if (!searched) return std::nullopt;
  return std::vector<std::string>(names.begin(), names.end());
}

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
  for (const fs::path& adapter : base::entries_of(sources.root / adapters_folder)) {
    functions.push_back(adapter / "device");
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
  const std::optional<std::string> limits = read_file((root / "proc/self/limits").string());
  const std::size_t at = limits ? limits->find(line) : std::string::npos;
  if (at == std::string::npos) return;
  std::string_view value = std::string_view{*limits}.substr(at + line.size());
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  rank.locked_memory_unlimited = value.starts_with(no_limit);
  if (!rank.locked_memory_unlimited) rank.locked_memory_limit = leading_number(value);
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
