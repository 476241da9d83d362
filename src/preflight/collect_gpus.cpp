// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "preflight/collect_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/folder_entries.hpp"
#include "machine/procfs_and_cgroups.hpp"

namespace isoscale::preflight {
namespace {

namespace fs = std::filesystem;
using nvml::ask;
using nvml::ask_clock;
using nvml::ask_power;
using nvml::ask_text;
using nvml::Device;
using nvml::Functions;

/// Returns the sysfs folders of the node's NVIDIA GPUs (display controllers, class 0x0300 and
/// 0x0302), in the order of bus ids; nullopt if the kernel shows no PCI bus.
std::optional<std::vector<fs::path>> nvidia_functions(const fs::path& root) {
  const fs::path bus = root / "sys/bus/pci/devices";
  std::error_code failure;
  if (!fs::is_directory(bus, failure)) return std::nullopt;
  std::vector<fs::path> functions;
  for (fs::path& function : base::entries_of(bus)) {
    if (machine::line_in(function / "vendor") != "0x10de") continue;
    const std::string kind = machine::line_in(function / "class").value_or("");
    if (kind.starts_with("0x0300") || kind.starts_with("0x0302")) {
      functions.push_back(std::move(function));
    }
  }
  return functions;
}

std::optional<int> ask_int(int (*function)(Device, unsigned*), Device device) {
  const std::optional<unsigned> value = ask<unsigned>(function, device);
  return value ? std::optional{static_cast<int>(*value)} : std::nullopt;
}

/// Returns the number of memory pages that were retired for one cause; absent if unknown. Only
/// older GPUs retire faulty pages; newer GPUs replace faulty rows by spare ones.
std::optional<std::int64_t> retired_pages(const Functions& nvml, Device device, int cause) {
  std::array<unsigned long long, 64> addresses{};  // the most pages that a GPU can retire
  auto count = static_cast<unsigned>(addresses.size());
  if (nvml.retired_pages == nullptr) return std::nullopt;
  const int answer = nvml.retired_pages(device, cause, &count, addresses.data());
  if (answer != nvml::success && answer != nvml::insufficient_size) return std::nullopt;
  return count;
}

/// Returns the names of the reasons that nvmlDeviceGetCurrentClocksEventReasons gives, as bits, for
/// a reduced clock. The reason "idle" is left out.
std::vector<std::string> names_of_throttle_reasons(unsigned long long bits) {
  constexpr std::array<std::pair<unsigned long long, const char*>, 8> reasons{
      {{0x02, "application clock settings"},
       {0x04, "software power cap"},
       {0x08, "hardware slowdown"},
       {0x10, "sync boost"},
       {0x20, "software thermal slowdown"},
       {0x40, "hardware thermal slowdown"},
       {0x80, "hardware power brake"},
       {0x100, "display clock settings"}}};
  std::vector<std::string> names;
  for (const auto& [bit, name] : reasons) {
    if ((bits & bit) != 0) names.emplace_back(name);
  }
  return names;
}

void add_health(GpuFacts& gpu, const Functions& nvml, Device device) {
  if (const auto errors = ask<unsigned long long>(nvml.ecc_errors, device, nvml::uncorrected,
                                                  nvml::volatile_count)) {
    gpu.ecc_uncorrected = static_cast<std::int64_t>(*errors);
  }
  unsigned correctable = 0, uncorrectable = 0, pending = 0, failed = 0;
  if (nvml.remapped_rows != nullptr && nvml.remapped_rows(device, &correctable, &uncorrectable,
                                                          &pending, &failed) == nvml::success) {
    gpu.remapped_rows = uncorrectable;
    gpu.remap_pending = pending != 0;
    gpu.remap_failed = failed != 0;
  }
  const auto single = retired_pages(nvml, device, nvml::several_single_bit_errors);
  const auto twice = retired_pages(nvml, device, nvml::double_bit_error);
  if (single && twice) gpu.retired_pages = *single + *twice;
  if (const auto reasons = ask<unsigned long long>(nvml.clock_reasons, device)) {
    gpu.throttle_reasons = names_of_throttle_reasons(*reasons);
  }
}

std::optional<std::vector<std::int64_t>> processes_on(const Functions& nvml, Device device) {
  constexpr unsigned at_first = 64, at_most = 1U << 16U;  // room for this many processes
  if (nvml.compute_processes == nullptr) return std::nullopt;
  std::vector<nvml::ProcessInfo> found(at_first);
  auto count = static_cast<unsigned>(found.size());
  int answer = nvml.compute_processes(device, &count, found.data());
  if (answer == nvml::insufficient_size && count <= at_most) {
    found.resize(count + at_first);  // more processes may start before NVML is asked again
    count = static_cast<unsigned>(found.size());
    answer = nvml.compute_processes(device, &count, found.data());
  }
  if (answer != nvml::success || count > found.size()) return std::nullopt;
  std::vector<std::int64_t> pids;
  for (unsigned i = 0; i < count; ++i) pids.push_back(found[i].pid);
  return pids;
}

/// Returns the name of an NVML value; absent if the table `names` does not have the value.
template <class Value, std::size_t size>
std::optional<std::string> name_in(const std::array<std::pair<Value, const char*>, size>& names,
                                   Value value) {
  const auto* const found = std::ranges::find(names, value, &std::pair<Value, const char*>::first);
  return found == names.end() ? std::nullopt : std::optional<std::string>{found->second};
}

std::optional<std::string> fabric_state_of(const Functions& nvml, Device device) {
  const auto info = ask<nvml::FabricInfo>(nvml.fabric_info, device);
  if (!info) return std::nullopt;
  if (info->state == nvml::fabric_completed && info->status != nvml::success) {
    return fmt::format("failed: {}", info->status);
  }
  constexpr std::array<std::pair<unsigned char, const char*>, 4> names{
      {{nvml::fabric_not_supported, "not supported"},
       {nvml::fabric_not_started, "not started"},
       {nvml::fabric_in_progress, "in progress"},
       {nvml::fabric_completed, "completed"}}};
  return name_in(names, info->state);
}

std::optional<std::string> ancestor_name(int level) {
  constexpr std::array<std::pair<int, const char*>, 6> names{
      {{nvml::one_board, "one board"},
       {nvml::one_switch, "one switch"},
       {nvml::several_switches, "several switches"},
       {nvml::host_bridge, "host bridge"},
       {nvml::numa_node, "NUMA node"},
       {nvml::whole_system, "system"}}};
  return name_in(names, level);
}

GpuFacts ask_gpu(const Functions& nvml, Device device) {
  GpuFacts gpu = machine::gpu_facts(nvml, device);
  gpu.vbios = ask_text(nvml.vbios, device);
  // Users set the graphics clock, and the clock of the SMs follows it.
  gpu.sm_clock_application = ask_clock(nvml.application_clock, device, nvml::graphics_clock);
  gpu.power_limit_default = ask_power(nvml.power_limit_default, device);
  add_health(gpu, nvml, device);
  gpu.processes = processes_on(nvml, device);
  gpu.fabric_state = fabric_state_of(nvml, device);
  gpu.pcie_generation = ask_int(nvml.pcie_generation, device);
  gpu.pcie_generation_max = ask_int(nvml.pcie_generation_max, device);
  gpu.pcie_width = ask_int(nvml.pcie_width, device);
  gpu.pcie_width_max = ask_int(nvml.pcie_width_max, device);
  return gpu;
}

/// Adds all GPUs that NVML lists to `node`, and returns NVML's handles of them. If NVML cannot
/// count them, `node` is not changed.
std::vector<Device> ask_all(CheckedNode& node, const Functions& nvml) {
  std::vector<Device> handles;
  const std::optional<unsigned> count = ask<unsigned>(nvml.count);
  if (!count || nvml.handle_by_index == nullptr) return handles;
  node.gpus.emplace();
  node.gpus_lost = 0;
  for (unsigned index = 0; index < *count; ++index) {
    Device device = nullptr;
    const int answer = nvml.handle_by_index(index, &device);
    // A GPU that a control group or container hides from this process is not counted as lost.
    const bool withheld = answer == nvml::no_permission || answer == nvml::operating_system ||
                          answer == nvml::unknown_error;
    if (answer != nvml::success && !withheld) ++*node.gpus_lost;
    if (answer != nvml::success) continue;
    node.gpus->push_back(ask_gpu(nvml, device));
    handles.push_back(device);
  }
  return handles;
}

/// Adds the facts that sysfs shows. For the PCIe link, facts that NVML gave are kept.
void add_pci(GpuFacts& gpu, machine::PciFacts facts) {
  for (const auto fact :
       {&machine::PciFacts::pcie_generation, &machine::PciFacts::pcie_generation_max,
        &machine::PciFacts::pcie_width, &machine::PciFacts::pcie_width_max}) {
    if (gpu.*fact) facts.*fact = gpu.*fact;
  }
  static_cast<machine::PciFacts&>(gpu) = std::move(facts);
}

/// True if GPU `a` has a P2P capability (a constant of NVML such as p2p_read) towards GPU `b`;
/// nullopt if NVML does not say.
std::optional<bool> can(const Functions& nvml, Device a, Device b, int capability) {
  const std::optional<int> status = ask<int>(nvml.p2p_status, a, b, capability);
  if (!status || *status == nvml::p2p_unknown) return std::nullopt;
  return *status == nvml::p2p_ok;
}

void ask_peers(CheckedPeers& peers, const Functions& nvml, Device a, Device b) {
  const std::optional<bool> reads = can(nvml, a, b, nvml::p2p_read);
  const std::optional<bool> writes = can(nvml, a, b, nvml::p2p_write);
  if (reads && writes) peers.peer_access = *reads && *writes;
  if (can(nvml, a, b, nvml::p2p_nvlink) == true) {
    peers.link = "NVLink";
  } else if (const auto level = ask<int>(nvml.common_ancestor, a, b)) {
    peers.link = ancestor_name(*level);
  }
}

}  // namespace

void add_gpus(CheckedNode& node, const FactSources& sources) {
  const Functions* const nvml = sources.functions();
  const std::vector<Device> handles =
      nvml == nullptr ? std::vector<Device>{} : ask_all(node, *nvml);
  const std::optional<std::vector<fs::path>> functions = nvidia_functions(sources.root);
  if (functions && !node.gpus) node.gpus.emplace();
  for (const fs::path& function : functions.value_or(std::vector<fs::path>{})) {
    const std::string bus_id = function.filename().string();
    auto gpu = std::ranges::find(*node.gpus, bus_id, &GpuFacts::pci_bus_id);
    if (gpu == node.gpus->end()) {
      gpu = node.gpus->emplace(node.gpus->end());
      gpu->pci_bus_id = bus_id;
    }
    add_pci(*gpu, pci_facts(function));
  }
  if (!node.gpus) return;
  add_xids(*node.gpus, sources.root);
  for (std::size_t j = 0; j < node.gpus->size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      const GpuFacts &a = (*node.gpus)[i], &b = (*node.gpus)[j];
      CheckedPeers& peers = node.peers.emplace_back();
      peers.i = static_cast<int>(i);
      peers.j = static_cast<int>(j);
      if (j < handles.size()) ask_peers(peers, *nvml, handles[i], handles[j]);
      if (joined_by_nvlinks(a, b)) peers.link = "NVLink";
      const auto distance = distance_between(a, b);
      if (!peers.link && distance) peers.link = name(*distance);
    }
  }
}

std::optional<GpuFacts> collect_gpu(const FactSources& sources, std::string_view uuid) {
  const Functions* const nvml = sources.functions();
  if (nvml == nullptr) return std::nullopt;
  const auto device = ask<Device>(nvml->handle_by_uuid, std::string{uuid}.c_str());
  if (!device) return std::nullopt;
  GpuFacts gpu = ask_gpu(*nvml, *device);
  if (!gpu.pci_bus_id.empty()) {
    add_pci(gpu, pci_facts(sources.root / "sys/bus/pci/devices" / gpu.pci_bus_id));
  }
  return gpu;
}

std::optional<std::vector<std::string>> collect_visible_gpus(const FactSources& sources) {
  const Functions* const nvml = sources.functions();
  const auto count = nvml == nullptr ? std::nullopt : ask<unsigned>(nvml->count);
  if (!count || nvml->handle_by_index == nullptr) return std::nullopt;
  std::vector<std::string> uuids;
  for (unsigned index = 0; index < *count; ++index) {
    const auto device = ask<Device>(nvml->handle_by_index, index);
    if (!device) continue;
    if (auto uuid = ask_text(nvml->uuid, *device)) uuids.push_back(*std::move(uuid));
  }
  return uuids;
}

}  // namespace isoscale::preflight
