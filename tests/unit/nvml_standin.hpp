// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstring>

#include "machine/nvml_library.hpp"
#include "matchers.hpp"

namespace isoscale::machine {

/// A GPU of made-up properties; a handle is its address.
struct FakeGpu {
  std::string uuid = "GPU-12ab", bus_id = "00000000:1B:00.0";
  int handle_answer = nvml::success;
  std::map<unsigned, std::string> links{};  ///< peer of each active link
  unsigned links_down = nvml::most_links;   ///< further links that it has
  unsigned long long energy = 5'000'000;    ///< mJ
  unsigned long long reasons = 0x44;        ///< power cap, hardware thermal slowdown
  std::vector<unsigned> pids{};
  unsigned single_bit_pages = 0, double_bit_pages = 0;
  nvml::FabricInfo fabric{};
};

/// A stand-in for the library: the GPUs of a node behind C functions.
struct Fake {
  std::vector<FakeGpu> gpus = std::vector<FakeGpu>(1);
  int init_answer = nvml::success;
  int initialised = 0;
  int nvlink_answer = nvml::success;
  int text_answer = nvml::success;
  int peer_status = nvml::p2p_ok, nvlink_status = 5;  ///< of each pair; 5: not supported
  int ancestor = nvml::one_switch;
  int nvlink_type = nvml::unsigned_long_long;
  std::set<std::string> missing;      ///< functions that the library does not have
  std::set<std::string> unsupported;  ///< questions that are answered with NOT_SUPPORTED
};
inline Fake* fake = nullptr;  ///< C functions have no other way to it; one test at a time

/// Puts the stand-in in place, for as long as libraries may call it.
struct Installed : Fake {
  Installed() { fake = this; }
  ~Installed() { fake = nullptr; }
  Installed(const Installed&) = delete;
  Installed& operator=(const Installed&) = delete;
};

inline constexpr int some_error = 999;
inline const FakeGpu& gpu_at(nvml::Device device) { return *static_cast<FakeGpu*>(device); }

inline int put(const std::string& value, char* text, unsigned length) {
  if (fake->text_answer != nvml::success) return fake->text_answer;
  std::strncpy(text, value.c_str(), length);
  return nvml::success;
}
inline int put(const std::string& bus_id, nvml::PciInfo* pci) {
  std::strncpy(pci->bus_id.data(), bus_id.c_str(), pci->bus_id.size());
  return nvml::success;
}
template <class Value>
int set_to(Value* place, const Value& value) {
  *place = value;
  return nvml::success;
}
/// A function of one GPU that always gives this value.
template <auto value>
int gives(nvml::Device, decltype(value)* place) {
  return set_to(place, value);
}
/// A mode of one GPU, now and after its next reset.
template <auto current, auto pending>
int gives_both(nvml::Device, decltype(current)* now, decltype(pending)* later) {
  *now = current;
  return set_to(later, pending);
}
/// The answer to a question that some GPUs do not support.
template <class Value>
int answer_to(const char* question, Value* place, const Value& value) {
  *place = value;
  return fake->unsupported.contains(question) ? nvml::not_supported : nvml::success;
}
/// The clock of the multiprocessors or that of the memory, in MHz.
template <unsigned sm, unsigned memory>
int gives_clock(nvml::Device, int clock, unsigned* megahertz) {
  *megahertz = clock == nvml::sm_clock ? sm : memory;
  return clock == nvml::sm_clock || clock == nvml::memory_clock ? nvml::success : some_error;
}
inline int fake_reasons(nvml::Device device, unsigned long long* bits) {
  return set_to(bits, gpu_at(device).reasons);
}
inline int fake_processes(nvml::Device device, unsigned* count, nvml::ProcessInfo* processes) {
  const std::vector<unsigned>& pids = gpu_at(device).pids;
  const unsigned room = std::exchange(*count, static_cast<unsigned>(pids.size()));
  if (*count > room) return nvml::insufficient_size;
  for (std::size_t i = 0; i < pids.size(); ++i) processes[i].pid = pids[i];
  return nvml::success;
}

/// The functions of a library by name; the pointers are cast as dlsym gives them.
using Functions = std::map<std::string, void*, std::less<>>;
template <class... Arguments>
void* c_function(int (*function)(Arguments...)) {
  return reinterpret_cast<void*>(function);
}

inline void* find_fake(const char* name) {
  using nvml::Device;
  static const Functions table{
      {"nvmlInit_v2", c_function(+[] {
         if (fake->init_answer == nvml::success) ++fake->initialised;
         return fake->init_answer;
       })},
      {"nvmlShutdown", c_function(+[] {
         --fake->initialised;
         return nvml::success;
       })},
      {"nvmlSystemGetDriverVersion",
       c_function(+[](char* text, unsigned length) { return put("580.65.06", text, length); })},
      {"nvmlDeviceGetCount_v2", c_function(+[](unsigned* count) {
         return set_to(count, static_cast<unsigned>(fake->gpus.size()));
       })},
      {"nvmlDeviceGetHandleByIndex_v2", c_function(+[](unsigned index, Device* device) {
         *device = &fake->gpus.at(index);
         return fake->gpus.at(index).handle_answer;
       })},
      {"nvmlDeviceGetHandleByUUID", c_function(+[](const char* uuid, Device* device) {
         const auto gpu = std::ranges::find(fake->gpus, uuid, &FakeGpu::uuid);
         if (gpu == fake->gpus.end()) return some_error;
         *device = &*gpu;
         return nvml::success;
       })},
      {"nvmlDeviceGetName", c_function(+[](Device, char* text, unsigned length) {
         return put("NVIDIA H200", text, length);
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
      {"nvmlDeviceGetMemoryInfo", c_function(+[](Device, nvml::Memory* memory) {
         *memory = {.total = 150'000'000'000, .free = 149'000'000'000, .used = 1'000'000'000};
         return nvml::success;
       })},
      {"nvmlDeviceGetClockInfo", c_function(gives_clock<345, 2619>)},
      {"nvmlDeviceGetMaxClockInfo", c_function(gives_clock<1980, 3201>)},
      {"nvmlDeviceGetApplicationsClock", c_function(+[](Device, int clock, unsigned* megahertz) {
         *megahertz = 1755;
         return clock == nvml::graphics_clock ? nvml::success : some_error;
       })},
      {"nvmlDeviceGetPowerManagementLimit", c_function(gives<700'500U>)},
      {"nvmlDeviceGetPowerManagementDefaultLimit", c_function(gives<700'000U>)},
      {"nvmlDeviceGetEccMode", c_function(gives_both<1, 0>)},
      {"nvmlDeviceGetMigMode", c_function(gives_both<0U, 1U>)},
      {"nvmlDeviceGetPersistenceMode", c_function(gives<1>)},
      {"nvmlDeviceGetComputeMode", c_function(gives<3>)},
      {"nvmlDeviceGetNvLinkState", c_function(+[](Device device, unsigned link, int* active) {
         const FakeGpu& gpu = gpu_at(device);
         *active = gpu.links.contains(link) ? 1 : 0;
         return link < gpu.links.size() + gpu.links_down ? fake->nvlink_answer : some_error;
       })},
      {"nvmlDeviceGetNvLinkRemotePciInfo_v2",
       c_function(+[](Device device, unsigned link, nvml::PciInfo* pci) {
         return put(gpu_at(device).links.at(link), pci);
       })},
      {"nvmlDeviceGetGpuFabricInfo", c_function(+[](Device device, nvml::FabricInfo* info) {
         return set_to(info, gpu_at(device).fabric);
       })},
      {"nvmlDeviceGetCurrPcieLinkGeneration", c_function(gives<4U>)},
      {"nvmlDeviceGetMaxPcieLinkGeneration", c_function(gives<5U>)},
      {"nvmlDeviceGetCurrPcieLinkWidth", c_function(gives<8U>)},
      {"nvmlDeviceGetMaxPcieLinkWidth", c_function(gives<16U>)},
      {"nvmlDeviceGetTopologyCommonAncestor",
       c_function(+[](Device, Device, int* level) { return set_to(level, fake->ancestor); })},
      {"nvmlDeviceGetP2PStatus", c_function(+[](Device, Device, int capability, int* status) {
         const bool is_nvlink = capability == nvml::p2p_nvlink;
         return set_to(status, is_nvlink ? fake->nvlink_status : fake->peer_status);
       })},
      {"nvmlDeviceGetIndex",
       c_function(+[](Device, unsigned* index) { return answer_to("index", index, 3U); })},
      {"nvmlDeviceGetPowerUsage", c_function(+[](Device, unsigned* milliwatts) {
         return answer_to("power", milliwatts, 650'250U);
       })},
      {"nvmlDeviceGetTotalEnergyConsumption",
       c_function(+[](Device device, unsigned long long* millijoules) {
         return answer_to("energy", millijoules, gpu_at(device).energy);
       })},
      {"nvmlDeviceGetTemperature", c_function(+[](Device, int sensor, unsigned* celsius) {
         return sensor == 0 ? answer_to("temperature", celsius, 61U) : some_error;
       })},
      {"nvmlDeviceGetUtilizationRates", c_function(+[](Device, nvml::Utilisation* rates) {
         return answer_to("utilisation", rates, {.gpu = 75, .memory = 30});
       })},
      {"nvmlDeviceGetCurrentClocksEventReasons", c_function(fake_reasons)},
      {"nvmlDeviceGetCurrentClocksThrottleReasons", c_function(fake_reasons)},
      {"nvmlDeviceGetTotalEccErrors",
       c_function(+[](Device, int error, int counter, unsigned long long* count) {
         const bool is_volatile = counter == nvml::volatile_count;
         if (is_volatile && error == nvml::corrected) return some_error;
         return answer_to("errors", count, error == nvml::corrected ? 12 : is_volatile ? 4 : 1ULL);
       })},
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
         const FakeGpu& gpu = gpu_at(device);
         const unsigned room = *count;
         *count = cause == nvml::double_bit_error ? gpu.double_bit_pages : gpu.single_bit_pages;
         return *count <= room ? nvml::success : nvml::insufficient_size;
       })},
      {"nvmlDeviceGetComputeRunningProcesses_v2", c_function(fake_processes)},
      {"nvmlDeviceGetFieldValues", c_function(+[](Device, int count, nvml::FieldValue* field) {
         EXPECT_EQ(count, 1);
         const bool is_power = field->field == 186;
         EXPECT_EQ(field->scope, is_power ? 0 : ~0U);
         field->type = is_power ? 1 : fake->nvlink_type;
         field->answer = answer_to(is_power ? "power now" : "nvlink", &field->value,
                                   is_power              ? 640'500ULL
                                   : field->field == 138 ? 10
                                                         : 20);  // mW, KiB
         return nvml::success;
       })}};
  const auto found = table.find(name);
  return found == table.end() || fake->missing.contains(name) ? nullptr : found->second;
}

}  // namespace isoscale::machine
