// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "machine/gpu_facts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"

namespace isoscale::machine {
namespace {

using nvml::ask;
using nvml::ask_clock;
using nvml::ask_power;
using nvml::ask_text;
using nvml::Device;
using nvml::Functions;

/// Returns the current state of an on/off setting. NVML also gives the state after the next reset,
/// which is ignored.
template <class Mode>
std::optional<bool> ask_mode(int (*function)(Device, Mode*, Mode*), Device device) {
  Mode current{}, pending{};
  if (function == nullptr || function(device, &current, &pending) != nvml::success) {
    return std::nullopt;
  }
  return current != 0;
}

std::string bus_id_of(nvml::PciInfo pci) {
  pci.bus_id.back() = '\0';
  return sysfs_bus_id(pci.bus_id.data());
}

std::optional<std::string> compute_mode_of(const Functions& nvml, Device device) {
  constexpr std::array<const char*, 4> names{"default", "exclusive thread", "prohibited",
                                             "exclusive process"};
  const std::optional<int> mode = ask<int>(nvml.compute_mode, device);
  if (!mode || *mode < 0 || static_cast<std::size_t>(*mode) >= names.size()) return std::nullopt;
  return names[static_cast<std::size_t>(*mode)];
}

void add_links(GpuFacts& facts, const Functions& nvml, Device device) {
  if (nvml.nvlink_state == nullptr) return;
  int active = 0, inactive = 0;
  bool known = false, peers_known = true;
  std::set<std::string> peers;
  for (unsigned link = 0; link < nvml::most_links; ++link) {
    int state = 0;
    const int answer = nvml.nvlink_state(device, link, &state);
    known = known || answer == nvml::success || answer == nvml::not_supported;
    if (answer != nvml::success) continue;
    ++(state == 0 ? inactive : active);
    if (state == 0) continue;
    const auto peer = ask<nvml::PciInfo>(nvml.nvlink_remote_pci, device, link);
    peers_known = peers_known && peer.has_value();
    if (peer) peers.insert(bus_id_of(*peer));
  }
  if (!known) return;
  facts.nvlinks_active = active;
  facts.nvlinks_inactive = inactive;
  if (peers_known) facts.nvlink_peers.emplace(peers.begin(), peers.end());
}

std::optional<std::string> fabric_of(const Functions& nvml, Device device) {
  const auto info = ask<nvml::FabricInfo>(nvml.fabric_info, device);
  if (!info || info->state != nvml::fabric_completed || info->status != nvml::success) {
    return std::nullopt;
  }
  if (std::ranges::all_of(info->cluster, [](unsigned char part) { return part == 0; })) {
    return std::nullopt;
  }
  return fmt::format("{:02x}.{}", fmt::join(info->cluster, ""), info->clique);
}

}  // namespace

std::string sysfs_bus_id(std::string_view bus_id) {
  constexpr std::size_t domain_digits = 4;
  while (bus_id.find(':') != std::string_view::npos && bus_id.find(':') > domain_digits &&
         bus_id.front() == '0') {
    bus_id.remove_prefix(1);
  }
  return base::lowered(bus_id);
}

std::optional<GpuFacts> gpu_facts(const NvmlLibrary& library, std::string_view uuid) {
  if (library.functions() == nullptr) return std::nullopt;
  const Functions& nvml = *library.functions();
  const std::optional<Device> device = find_device(nvml, uuid);
  return device ? std::optional{gpu_facts(nvml, *device)} : std::nullopt;
}

GpuFacts gpu_facts(const Functions& nvml, Device device) {
  GpuFacts facts;
  facts.name = ask_text(nvml.name, device);
  facts.uuid = ask_text(nvml.uuid, device).value_or("");
  facts.driver = ask_text(nvml.driver_version);
  if (const auto pci = ask<nvml::PciInfo>(nvml.pci_info, device)) {
    facts.pci_bus_id = bus_id_of(*pci);
  }
  if (const auto memory = ask<nvml::Memory>(nvml.memory_info, device)) {
    facts.memory = static_cast<double>(memory->total);
    facts.memory_used = static_cast<double>(memory->used);
  }
  facts.sm_clock = ask_clock(nvml.clock_info, device, nvml::sm_clock);
  facts.sm_clock_max = ask_clock(nvml.max_clock_info, device, nvml::sm_clock);
  facts.memory_clock = ask_clock(nvml.clock_info, device, nvml::memory_clock);
  facts.memory_clock_max = ask_clock(nvml.max_clock_info, device, nvml::memory_clock);
  facts.power_limit = ask_power(nvml.power_limit, device);
  facts.ecc = ask_mode(nvml.ecc_mode, device);
  facts.mig = ask_mode(nvml.mig_mode, device);
  if (const auto mode = ask<int>(nvml.persistence_mode, device)) facts.persistence = *mode != 0;
  facts.compute_mode = compute_mode_of(nvml, device);
  add_links(facts, nvml, device);
  facts.fabric = fabric_of(nvml, device);
  return facts;
}

std::map<std::string, std::string> gpu_facts_text(const GpuFacts& facts) {
  std::map<std::string, std::string> text;
  const auto put = [&](const char* key, const std::optional<std::string>& value) {
    if (value && !value->empty()) text[key] = *value;
  };
  const auto put_mode = [&](const char* key, const std::optional<bool>& value) {
    if (value) text[key] = *value ? "on" : "off";
  };
  put("gpu_name", facts.name);
  put("gpu_uuid", facts.uuid);
  put("gpu_pci", facts.pci_bus_id);
  put("gpu_driver", facts.driver);
  put("gpu_compute_mode", facts.compute_mode);
  put("gpu_fabric", facts.fabric);
  put_mode("gpu_ecc", facts.ecc);
  put_mode("gpu_mig", facts.mig);
  put_mode("gpu_persistence", facts.persistence);
  if (facts.nvlink_peers) {
    put("gpu_nvlink_peers", fmt::format("{}", fmt::join(*facts.nvlink_peers, ",")));
  }
  return text;
}

std::map<std::string, double> gpu_facts_number(const GpuFacts& facts) {
  std::map<std::string, double> number;
  const auto put = [&](const char* key, const auto& value) {
    if (value) number[key] = *value;
  };
  put("gpu_memory_total", facts.memory);
  put("gpu_memory_used", facts.memory_used);
  put("gpu_sm_clock", facts.sm_clock);
  put("gpu_sm_clock_max", facts.sm_clock_max);
  put("gpu_memory_clock", facts.memory_clock);
  put("gpu_memory_clock_max", facts.memory_clock_max);
  put("gpu_power_limit", facts.power_limit);
  put("gpu_nvlinks", facts.nvlinks_active);
  return number;
}

}  // namespace isoscale::machine
