// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "machine/nvml.hpp"
#include "tests/unit/nvml_standin.hpp"

namespace isoscale::machine {

/// A GPU of a made-up node; a handle is its address.
struct FakeGpu {
  std::string uuid, bus_id;
  int handle_answer = nvml::success;
  std::map<unsigned, std::string> links;  ///< peer of each active link
  unsigned links_down = 0;                ///< further links that it has
  std::vector<unsigned> pids;
  unsigned single_bit_pages = 0, double_bit_pages = 0;
  unsigned long long reasons = 0;
  nvml::FabricInfo fabric{};
};

/// A node's GPUs behind C functions; what one GPU answers like any other comes from `Fake`.
struct FakeNode {
  std::vector<FakeGpu> gpus;
  int peer_status = nvml::p2p_ok, nvlink_status = 5;  ///< 5: not supported
  int ancestor = nvml::one_switch;
  std::set<std::string> missing;  ///< functions that the library does not have
};
inline FakeNode* fake_node = nullptr;  ///< C functions have no other way to it

inline const FakeGpu& gpu_at(nvml::Device device) { return *static_cast<FakeGpu*>(device); }
inline int set_to(unsigned* place, unsigned value) {
  *place = value;
  return nvml::success;
}

inline int node_count(unsigned* count) {
  return set_to(count, static_cast<unsigned>(fake_node->gpus.size()));
}
inline int node_handle(unsigned index, nvml::Device* device) {
  *device = &fake_node->gpus.at(index);
  return fake_node->gpus.at(index).handle_answer;
}
inline int node_by_uuid(const char* uuid, nvml::Device* device) {
  const auto gpu = std::ranges::find(fake_node->gpus, uuid, &FakeGpu::uuid);
  if (gpu == fake_node->gpus.end()) return some_error;
  *device = &*gpu;
  return nvml::success;
}
inline int node_uuid(nvml::Device device, char* text, unsigned length) {
  return put(gpu_at(device).uuid, text, length);
}
inline int node_vbios(nvml::Device, char* text, unsigned length) {
  return put("96.00.A5.00.01", text, length);
}
inline int node_pci(nvml::Device device, nvml::PciInfo* pci) {
  std::strncpy(pci->bus_id.data(), gpu_at(device).bus_id.c_str(), pci->bus_id.size());
  return nvml::success;
}
inline int node_link(nvml::Device device, unsigned link, int* active) {
  const FakeGpu& gpu = gpu_at(device);
  *active = gpu.links.contains(link) ? 1 : 0;
  const bool there = link < gpu.links.size() + gpu.links_down;
  return there ? nvml::success : some_error;
}
inline int node_link_peer(nvml::Device device, unsigned link, nvml::PciInfo* pci) {
  std::strncpy(pci->bus_id.data(), gpu_at(device).links.at(link).c_str(), pci->bus_id.size());
  return nvml::success;
}
inline int node_application_clock(nvml::Device, int clock, unsigned* megahertz) {
  *megahertz = 1755;
  return clock == nvml::graphics_clock ? nvml::success : some_error;
}
inline int node_default_power(nvml::Device, unsigned* milliwatts) {
  return set_to(milliwatts, 700'000);
}
inline int node_remapped(nvml::Device, unsigned* correctable, unsigned* uncorrectable,
                         unsigned* pending, unsigned* failed) {
  *correctable = 9;
  *uncorrectable = 2;
  *pending = 1;
  *failed = 0;
  return nvml::success;
}
inline int node_retired(nvml::Device device, int cause, unsigned* count, unsigned long long*) {
  const unsigned room = *count;
  *count = cause == nvml::double_bit_error ? gpu_at(device).double_bit_pages
                                           : gpu_at(device).single_bit_pages;
  return *count <= room ? nvml::success : nvml::insufficient_size;
}
inline int node_processes(nvml::Device device, unsigned* count, nvml::ProcessInfo* processes) {
  const std::vector<unsigned>& pids = gpu_at(device).pids;
  const unsigned room = std::exchange(*count, static_cast<unsigned>(pids.size()));
  if (*count > room) return nvml::insufficient_size;
  for (std::size_t i = 0; i < pids.size(); ++i) processes[i].pid = pids[i];
  return nvml::success;
}
inline int node_errors(nvml::Device, int error, int counter, unsigned long long* count) {
  *count = 4;
  return error == nvml::uncorrected && counter == nvml::volatile_count ? nvml::success : some_error;
}
inline int node_reasons(nvml::Device device, unsigned long long* bits) {
  *bits = gpu_at(device).reasons;
  return nvml::success;
}
inline int node_fabric(nvml::Device device, nvml::FabricInfo* info) {
  *info = gpu_at(device).fabric;
  return nvml::success;
}
inline int node_generation(nvml::Device, unsigned* value) { return set_to(value, 4); }
inline int node_generation_max(nvml::Device, unsigned* value) { return set_to(value, 5); }
inline int node_width(nvml::Device, unsigned* value) { return set_to(value, 8); }
inline int node_width_max(nvml::Device, unsigned* value) { return set_to(value, 16); }
inline int node_ancestor(nvml::Device, nvml::Device, int* level) {
  *level = fake_node->ancestor;
  return nvml::success;
}
inline int node_p2p(nvml::Device, nvml::Device, int capability, int* status) {
  *status = capability == nvml::p2p_nvlink ? fake_node->nvlink_status : fake_node->peer_status;
  return nvml::success;
}

inline void* find_in_node(const char* name) {
  static const std::map<std::string, void*, std::less<>> table{
      {"nvmlDeviceGetCount_v2", reinterpret_cast<void*>(&node_count)},
      {"nvmlDeviceGetHandleByIndex_v2", reinterpret_cast<void*>(&node_handle)},
      {"nvmlDeviceGetHandleByUUID", reinterpret_cast<void*>(&node_by_uuid)},
      {"nvmlDeviceGetUUID", reinterpret_cast<void*>(&node_uuid)},
      {"nvmlDeviceGetVbiosVersion", reinterpret_cast<void*>(&node_vbios)},
      {"nvmlDeviceGetPciInfo_v3", reinterpret_cast<void*>(&node_pci)},
      {"nvmlDeviceGetNvLinkState", reinterpret_cast<void*>(&node_link)},
      {"nvmlDeviceGetNvLinkRemotePciInfo_v2", reinterpret_cast<void*>(&node_link_peer)},
      {"nvmlDeviceGetApplicationsClock", reinterpret_cast<void*>(&node_application_clock)},
      {"nvmlDeviceGetPowerManagementDefaultLimit", reinterpret_cast<void*>(&node_default_power)},
      {"nvmlDeviceGetRemappedRows", reinterpret_cast<void*>(&node_remapped)},
      {"nvmlDeviceGetRetiredPages", reinterpret_cast<void*>(&node_retired)},
      {"nvmlDeviceGetComputeRunningProcesses_v3", reinterpret_cast<void*>(&node_processes)},
      {"nvmlDeviceGetComputeRunningProcesses_v2", reinterpret_cast<void*>(&node_processes)},
      {"nvmlDeviceGetTotalEccErrors", reinterpret_cast<void*>(&node_errors)},
      {"nvmlDeviceGetCurrentClocksEventReasons", reinterpret_cast<void*>(&node_reasons)},
      {"nvmlDeviceGetGpuFabricInfo", reinterpret_cast<void*>(&node_fabric)},
      {"nvmlDeviceGetCurrPcieLinkGeneration", reinterpret_cast<void*>(&node_generation)},
      {"nvmlDeviceGetMaxPcieLinkGeneration", reinterpret_cast<void*>(&node_generation_max)},
      {"nvmlDeviceGetCurrPcieLinkWidth", reinterpret_cast<void*>(&node_width)},
      {"nvmlDeviceGetMaxPcieLinkWidth", reinterpret_cast<void*>(&node_width_max)},
      {"nvmlDeviceGetTopologyCommonAncestor", reinterpret_cast<void*>(&node_ancestor)},
      {"nvmlDeviceGetP2PStatus", reinterpret_cast<void*>(&node_p2p)}};
  if (fake_node->missing.contains(name)) return nullptr;
  const auto found = table.find(name);
  return found == table.end() ? find_fake(name) : found->second;
}

}  // namespace isoscale::machine
