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
inline int node_processes(nvml::Device device, unsigned* count, nvml::ProcessInfo* processes) {
  const std::vector<unsigned>& pids = gpu_at(device).pids;
  const unsigned room = std::exchange(*count, static_cast<unsigned>(pids.size()));
  if (*count > room) return nvml::insufficient_size;
  for (std::size_t i = 0; i < pids.size(); ++i) processes[i].pid = pids[i];
  return nvml::success;
}

inline void* find_in_node(const char* name) {
  using nvml::Device;
  static const Functions table{
      {"nvmlDeviceGetCount_v2", c_function(+[](unsigned* count) {
         return set_to(count, static_cast<unsigned>(fake_node->gpus.size()));
       })},
      {"nvmlDeviceGetHandleByIndex_v2", c_function(+[](unsigned index, Device* device) {
         *device = &fake_node->gpus.at(index);
         return fake_node->gpus.at(index).handle_answer;
       })},
      {"nvmlDeviceGetHandleByUUID", c_function(+[](const char* uuid, Device* device) {
         const auto gpu = std::ranges::find(fake_node->gpus, uuid, &FakeGpu::uuid);
         if (gpu == fake_node->gpus.end()) return some_error;
         *device = &*gpu;
         return nvml::success;
       })},
      {"nvmlDeviceGetUUID", c_function(+[](Device device, char* text, unsigned length) {
         return put(gpu_at(device).uuid, text, length);
       })},
      {"nvmlDeviceGetVbiosVersion", c_function(+[](Device, char* text, unsigned length) {
         return put("96.00.A5.00.01", text, length);
       })},
      {"nvmlDeviceGetPciInfo_v3", c_function(+[](Device device, nvml::PciInfo* pci) {
         return put(gpu_at(device).bus_id, pci);
       })},
      {"nvmlDeviceGetNvLinkState", c_function(+[](Device device, unsigned link, int* active) {
         const FakeGpu& gpu = gpu_at(device);
         *active = gpu.links.contains(link) ? 1 : 0;
         const bool there = link < gpu.links.size() + gpu.links_down;
         return there ? nvml::success : some_error;
       })},
      {"nvmlDeviceGetNvLinkRemotePciInfo_v2",
       c_function(+[](Device device, unsigned link, nvml::PciInfo* pci) {
         return put(gpu_at(device).links.at(link), pci);
       })},
      {"nvmlDeviceGetApplicationsClock", c_function(+[](Device, int clock, unsigned* megahertz) {
         *megahertz = 1755;
         return clock == nvml::graphics_clock ? nvml::success : some_error;
       })},
      {"nvmlDeviceGetPowerManagementDefaultLimit", c_function(gives<700'000U>)},
      {"nvmlDeviceGetRemappedRows",
       c_function(+[](Device, unsigned* correctable, unsigned* uncorrectable, unsigned* pending,
                      unsigned* failed) {
         *correctable = 9;
         *uncorrectable = 2;
         *pending = 1;
         return set_to(failed, 0U);
       })},
      {"nvmlDeviceGetRetiredPages",
       c_function(+[](Device device, int cause, unsigned* count, unsigned long long*) {
         const unsigned room = *count;
         *count = cause == nvml::double_bit_error ? gpu_at(device).double_bit_pages
                                                  : gpu_at(device).single_bit_pages;
         return *count <= room ? nvml::success : nvml::insufficient_size;
       })},
      {"nvmlDeviceGetComputeRunningProcesses_v3", c_function(node_processes)},
      {"nvmlDeviceGetComputeRunningProcesses_v2", c_function(node_processes)},
      {"nvmlDeviceGetTotalEccErrors",
       c_function(+[](Device, int error, int counter, unsigned long long* count) {
         *count = 4;
         const bool known = error == nvml::uncorrected && counter == nvml::volatile_count;
         return known ? nvml::success : some_error;
       })},
      {"nvmlDeviceGetCurrentClocksEventReasons",
       c_function(+[](Device device, unsigned long long* bits) {
         return set_to(bits, gpu_at(device).reasons);
       })},
      {"nvmlDeviceGetGpuFabricInfo", c_function(+[](Device device, nvml::FabricInfo* info) {
         return set_to(info, gpu_at(device).fabric);
       })},
      {"nvmlDeviceGetCurrPcieLinkGeneration", c_function(gives<4U>)},
      {"nvmlDeviceGetMaxPcieLinkGeneration", c_function(gives<5U>)},
      {"nvmlDeviceGetCurrPcieLinkWidth", c_function(gives<8U>)},
      {"nvmlDeviceGetMaxPcieLinkWidth", c_function(gives<16U>)},
      {"nvmlDeviceGetTopologyCommonAncestor",
       c_function(+[](Device, Device, int* level) { return set_to(level, fake_node->ancestor); })},
      {"nvmlDeviceGetP2PStatus", c_function(+[](Device, Device, int capability, int* status) {
         const bool is_nvlink = capability == nvml::p2p_nvlink;
         return set_to(status, is_nvlink ? fake_node->nvlink_status : fake_node->peer_status);
       })}};
  if (fake_node->missing.contains(name)) return nullptr;
  const auto found = table.find(name);
  return found == table.end() ? find_fake(name) : found->second;
}

}  // namespace isoscale::machine
