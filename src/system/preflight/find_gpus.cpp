// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <utility>

#include "system/nvml_ask.hpp"
#include "system/preflight/gpus.hpp"
#include "system/preflight/pci.hpp"

namespace isoscale::system {
namespace {

namespace fs = std::filesystem;
using nvml::ask;
using nvml::Device;
using nvml::Functions;

/// What the library tells, where it does.
void ask_all(FoundGpus& found, const Functions& nvml) {
  const std::optional<unsigned> count = ask<unsigned>(nvml.count);
  if (!count || nvml.handle_by_index == nullptr) return;
  found.gpus.emplace();
  found.lost = 0;
  for (unsigned index = 0; index < *count; ++index) {
    Device device = nullptr;
    const int answer = nvml.handle_by_index(index, &device);
    // A GPU that control groups keep from this process is no loss.
    const bool withheld = answer == nvml::no_permission || answer == nvml::operating_system;
    if (answer != nvml::success && !withheld) ++*found.lost;
    if (answer != nvml::success) continue;
    found.gpus->push_back(ask_gpu(nvml, device));
    found.handles.push_back(device);
  }
}

void take_if_absent(std::optional<int>& value, const std::optional<int>& other) {
  if (!value) value = other;
}

void add_pci(CheckedGpu& gpu, const PciFacts& facts) {
  take_if_absent(gpu.pcie_generation, facts.generation);
  take_if_absent(gpu.pcie_generation_max, facts.generation_max);
  take_if_absent(gpu.pcie_width, facts.width);
  take_if_absent(gpu.pcie_width_max, facts.width_max);
  gpu.numa_node = facts.numa_node;
  gpu.pci_path = facts.path;
}

std::optional<std::string> ancestor_name(int level) {
  switch (level) {
    case nvml::one_board:
      return "one board";
    case nvml::one_switch:
      return "one switch";
    case nvml::several_switches:
      return "several switches";
    case nvml::host_bridge:
      return "host bridge";
    case nvml::numa_node:
      return "NUMA node";
    case nvml::whole_system:
      return "system";
    default:
      return std::nullopt;
  }
}

/// Whether one has a capability towards the other; nullopt where the library does not tell.
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

bool joined_by_nvlinks(const CheckedGpu& a, const CheckedGpu& b) {
  if (!a.nvlink_peers || !b.nvlink_peers) return false;
  return std::ranges::any_of(*a.nvlink_peers, [&](const std::string& peer) {
    return peer == b.pci_bus_id ||
           std::ranges::find(*b.nvlink_peers, peer) != b.nvlink_peers->end();
  });
}

FoundGpus find_gpus(const Functions* nvml, const fs::path& root) {
  FoundGpus found;
  if (nvml != nullptr) ask_all(found, *nvml);
  const std::optional<std::vector<fs::path>> functions = nvidia_functions(root);
  if (!functions) return found;
  if (!found.gpus) found.gpus.emplace();
  for (const fs::path& function : *functions) {
    const std::string bus_id = function.filename().string();
    auto gpu = std::ranges::find(*found.gpus, bus_id, &CheckedGpu::pci_bus_id);
    if (gpu == found.gpus->end()) {
      gpu = found.gpus->emplace(found.gpus->end());
      gpu->pci_bus_id = bus_id;
    }
    add_pci(*gpu, pci_facts(function));
  }
  return found;
}

std::optional<CheckedGpu> find_gpu(const Functions& nvml, std::string_view uuid,
                                   const fs::path& root) {
  const std::string text{uuid};
  const auto device = ask<Device>(nvml.handle_by_uuid, text.c_str());
  if (!device) return std::nullopt;
  CheckedGpu gpu = ask_gpu(nvml, *device);
  if (!gpu.pci_bus_id.empty()) {
    add_pci(gpu, pci_facts(root / "sys/bus/pci/devices" / gpu.pci_bus_id));
  }
  return gpu;
}

std::optional<std::vector<std::string>> visible_gpus(const Functions& nvml) {
  const std::optional<unsigned> count = ask<unsigned>(nvml.count);
  if (!count || nvml.handle_by_index == nullptr) return std::nullopt;
  std::vector<std::string> uuids;
  for (unsigned index = 0; index < *count; ++index) {
    const auto device = ask<Device>(nvml.handle_by_index, index);
    if (!device) continue;
    if (auto uuid = nvml::ask_text(nvml.uuid, *device)) uuids.push_back(*std::move(uuid));
  }
  return uuids;
}

std::vector<CheckedPeers> find_peers(const Functions* nvml, const FoundGpus& found) {
  std::vector<CheckedPeers> all;
  if (!found.gpus) return all;
  for (std::size_t j = 0; j < found.gpus->size(); ++j) {
    for (std::size_t i = 0; i < j; ++i) {
      const CheckedGpu &a = (*found.gpus)[i], &b = (*found.gpus)[j];
      CheckedPeers peers;
      peers.i = static_cast<int>(i);
      peers.j = static_cast<int>(j);
      if (nvml != nullptr && j < found.handles.size()) {
        ask_peers(peers, *nvml, found.handles[i], found.handles[j]);
      }
      if (joined_by_nvlinks(a, b)) peers.link = "NVLink";
      if (!peers.link) {
        peers.link = closest_on_paths(a.pci_path, a.numa_node, b.pci_path, b.numa_node);
      }
      all.push_back(std::move(peers));
    }
  }
  return all;
}

}  // namespace isoscale::system
