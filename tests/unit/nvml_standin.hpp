// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <string>

#include "machine/nvml.hpp"

namespace isoscale::machine {

/// A stand-in for the library: a GPU of made-up properties behind C functions.
struct Fake {
  int init_answer = nvml::success;
  int initialised = 0;
  std::string uuid = "GPU-12ab";
  std::map<unsigned, std::string> links;  ///< peer of each active link
  int nvlink_answer = nvml::success;
  int text_answer = nvml::success;
  nvml::FabricInfo fabric{};
  std::set<std::string> missing;
  std::set<std::string> unsupported;      ///< questions that are answered with NOT_SUPPORTED
  unsigned long long energy = 5'000'000;  ///< mJ
  unsigned long long reasons = 0x44;      ///< power cap, hardware thermal slowdown
  int nvlink_type = nvml::unsigned_long_long;
};
inline Fake* fake = nullptr;  ///< C functions have no other way to it; one test at a time

inline constexpr int some_error = 999;
inline int device_tag = 0;

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
inline int answer_to(const char* question) {
  return fake->unsupported.contains(question) ? nvml::not_supported : nvml::success;
}
inline int fake_reasons(nvml::Device, unsigned long long* bits) {
  *bits = fake->reasons;
  return answer_to("reasons");
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
      {"nvmlDeviceGetHandleByUUID", c_function(+[](const char* uuid, Device* device) {
         *device = &device_tag;
         return uuid == fake->uuid ? nvml::success : some_error;
       })},
      {"nvmlDeviceGetName", c_function(+[](Device, char* text, unsigned length) {
         return put("NVIDIA H200", text, length);
       })},
      {"nvmlDeviceGetUUID", c_function(+[](Device, char* text, unsigned length) {
         return put(fake->uuid, text, length);
       })},
      {"nvmlDeviceGetPciInfo_v3", c_function(+[](Device device, nvml::PciInfo* pci) {
         EXPECT_EQ(device, &device_tag);
         return put("00000000:1B:00.0", pci);
       })},
      {"nvmlDeviceGetMemoryInfo", c_function(+[](Device, nvml::Memory* memory) {
         *memory = {.total = 150'000'000'000, .free = 149'000'000'000, .used = 1'000'000'000};
         return nvml::success;
       })},
      {"nvmlDeviceGetClockInfo", c_function(+[](Device, int clock, unsigned* megahertz) {
         *megahertz = clock == 1 ? 345 : 2619;
         return clock == 1 || clock == 2 ? nvml::success : some_error;
       })},
      {"nvmlDeviceGetMaxClockInfo", c_function(+[](Device, int clock, unsigned* megahertz) {
         *megahertz = clock == 1 ? 1980 : 3201;
         return clock == 1 || clock == 2 ? nvml::success : some_error;
       })},
      {"nvmlDeviceGetPowerManagementLimit", c_function(gives<700'500U>)},
      {"nvmlDeviceGetEccMode", c_function(gives_both<1, 0>)},
      {"nvmlDeviceGetMigMode", c_function(gives_both<0U, 1U>)},
      {"nvmlDeviceGetPersistenceMode", c_function(gives<1>)},
      {"nvmlDeviceGetComputeMode", c_function(gives<3>)},
      {"nvmlDeviceGetNvLinkState", c_function(+[](Device, unsigned link, int* active) {
         *active = fake->links.contains(link) ? 1 : 0;
         return fake->nvlink_answer;
       })},
      {"nvmlDeviceGetNvLinkRemotePciInfo_v2",
       c_function(+[](Device, unsigned link, nvml::PciInfo* pci) {
         return put(fake->links.at(link), pci);
       })},
      {"nvmlDeviceGetGpuFabricInfo",
       c_function(+[](Device, nvml::FabricInfo* info) { return set_to(info, fake->fabric); })},
      {"nvmlDeviceGetIndex", c_function(+[](Device, unsigned* index) {
         *index = 3;
         return answer_to("index");
       })},
      {"nvmlDeviceGetPowerUsage", c_function(+[](Device, unsigned* milliwatts) {
         *milliwatts = 650'250;
         return answer_to("power");
       })},
      {"nvmlDeviceGetTotalEnergyConsumption",
       c_function(+[](Device, unsigned long long* millijoules) {
         *millijoules = fake->energy;
         return answer_to("energy");
       })},
      {"nvmlDeviceGetTemperature", c_function(+[](Device, int sensor, unsigned* celsius) {
         *celsius = 61;
         return sensor == 0 ? answer_to("temperature") : some_error;
       })},
      {"nvmlDeviceGetUtilizationRates", c_function(+[](Device, nvml::Utilisation* rates) {
         *rates = {.gpu = 75, .memory = 30};
         return answer_to("utilisation");
       })},
      {"nvmlDeviceGetCurrentClocksEventReasons", c_function(fake_reasons)},
      {"nvmlDeviceGetCurrentClocksThrottleReasons", c_function(fake_reasons)},
      {"nvmlDeviceGetTotalEccErrors",
       c_function(+[](Device, int error, int counter, unsigned long long* count) {
         *count = error == 0 ? 12 : 1;
         return counter == 1 ? answer_to("errors") : some_error;
       })},
      {"nvmlDeviceGetFieldValues", c_function(+[](Device, int count, nvml::FieldValue* field) {
         EXPECT_EQ(count, 1);
         EXPECT_EQ(field->scope, ~0U);
         field->answer = answer_to("nvlink");
         field->type = fake->nvlink_type;
         field->value = field->field == 138 ? 10 : 20;  // KiB
         return nvml::success;
       })}};
  const auto found = table.find(name);
  return found == table.end() || fake->missing.contains(name) ? nullptr : found->second;
}

}  // namespace isoscale::machine
