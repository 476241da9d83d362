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

inline int fake_init() {
  if (fake->init_answer == nvml::success) ++fake->initialised;
  return fake->init_answer;
}
inline int fake_shutdown() {
  --fake->initialised;
  return nvml::success;
}
inline int put(const std::string& value, char* text, unsigned length) {
  if (fake->text_answer != nvml::success) return fake->text_answer;
  std::strncpy(text, value.c_str(), length);
  return nvml::success;
}
inline int fake_driver(char* text, unsigned length) { return put("580.65.06", text, length); }
inline int fake_handle(const char* uuid, nvml::Device* device) {
  *device = &device_tag;
  return uuid == fake->uuid ? nvml::success : some_error;
}
inline int fake_name(nvml::Device, char* text, unsigned length) {
  return put("NVIDIA H200", text, length);
}
inline int fake_uuid(nvml::Device, char* text, unsigned length) {
  return put(fake->uuid, text, length);
}
inline int fake_pci(nvml::Device device, nvml::PciInfo* pci) {
  EXPECT_EQ(device, &device_tag);
  std::strncpy(pci->bus_id.data(), "00000000:1B:00.0", pci->bus_id.size());
  return nvml::success;
}
inline int fake_memory(nvml::Device, nvml::Memory* memory) {
  *memory = {.total = 150'000'000'000, .free = 149'000'000'000, .used = 1'000'000'000};
  return nvml::success;
}
inline int fake_clock(nvml::Device, int clock, unsigned* megahertz) {
  *megahertz = clock == 1 ? 345 : 2619;
  return clock == 1 || clock == 2 ? nvml::success : some_error;
}
inline int fake_max_clock(nvml::Device, int clock, unsigned* megahertz) {
  *megahertz = clock == 1 ? 1980 : 3201;
  return clock == 1 || clock == 2 ? nvml::success : some_error;
}
inline int fake_power(nvml::Device, unsigned* milliwatts) {
  *milliwatts = 700'500;
  return nvml::success;
}
inline int fake_ecc(nvml::Device, int* current, int* pending) {
  *current = 1;
  *pending = 0;
  return nvml::success;
}
inline int fake_mig(nvml::Device, unsigned* current, unsigned* pending) {
  *current = 0;
  *pending = 1;
  return nvml::success;
}
inline int fake_persistence(nvml::Device, int* mode) {
  *mode = 1;
  return nvml::success;
}
inline int fake_compute(nvml::Device, int* mode) {
  *mode = 3;
  return nvml::success;
}
inline int fake_link(nvml::Device, unsigned link, int* active) {
  *active = fake->links.contains(link) ? 1 : 0;
  return fake->nvlink_answer;
}
inline int fake_peer(nvml::Device, unsigned link, nvml::PciInfo* pci) {
  std::strncpy(pci->bus_id.data(), fake->links.at(link).c_str(), pci->bus_id.size());
  return nvml::success;
}

inline int fake_fabric(nvml::Device, nvml::FabricInfo* info) {
  *info = fake->fabric;
  return nvml::success;
}

/// The answer to a question that some GPUs do not support.
inline int answer_to(const char* question) {
  return fake->unsupported.contains(question) ? nvml::not_supported : nvml::success;
}
inline int fake_index(nvml::Device, unsigned* index) {
  *index = 3;
  return answer_to("index");
}
inline int fake_power_usage(nvml::Device, unsigned* milliwatts) {
  *milliwatts = 650'250;
  return answer_to("power");
}
inline int fake_energy(nvml::Device, unsigned long long* millijoules) {
  *millijoules = fake->energy;
  return answer_to("energy");
}
inline int fake_temperature(nvml::Device, int sensor, unsigned* celsius) {
  *celsius = 61;
  return sensor == 0 ? answer_to("temperature") : some_error;
}
inline int fake_utilisation(nvml::Device, nvml::Utilisation* rates) {
  *rates = {.gpu = 75, .memory = 30};
  return answer_to("utilisation");
}
inline int fake_reasons(nvml::Device, unsigned long long* bits) {
  *bits = fake->reasons;
  return answer_to("reasons");
}
inline int fake_errors(nvml::Device, int error, int counter, unsigned long long* count) {
  *count = error == 0 ? 12 : 1;
  return counter == 1 ? answer_to("errors") : some_error;
}
inline int fake_fields(nvml::Device, int count, nvml::FieldValue* field) {
  EXPECT_EQ(count, 1);
  EXPECT_EQ(field->scope, ~0U);
  field->answer = answer_to("nvlink");
  field->type = fake->nvlink_type;
  field->value = field->field == 138 ? 10 : 20;  // KiB
  return nvml::success;
}

inline void* find_fake(const char* name) {
  static const std::map<std::string, void*, std::less<>> table{
      {"nvmlInit_v2", reinterpret_cast<void*>(&fake_init)},
      {"nvmlShutdown", reinterpret_cast<void*>(&fake_shutdown)},
      {"nvmlSystemGetDriverVersion", reinterpret_cast<void*>(&fake_driver)},
      {"nvmlDeviceGetHandleByUUID", reinterpret_cast<void*>(&fake_handle)},
      {"nvmlDeviceGetName", reinterpret_cast<void*>(&fake_name)},
      {"nvmlDeviceGetUUID", reinterpret_cast<void*>(&fake_uuid)},
      {"nvmlDeviceGetPciInfo_v3", reinterpret_cast<void*>(&fake_pci)},
      {"nvmlDeviceGetMemoryInfo", reinterpret_cast<void*>(&fake_memory)},
      {"nvmlDeviceGetClockInfo", reinterpret_cast<void*>(&fake_clock)},
      {"nvmlDeviceGetMaxClockInfo", reinterpret_cast<void*>(&fake_max_clock)},
      {"nvmlDeviceGetPowerManagementLimit", reinterpret_cast<void*>(&fake_power)},
      {"nvmlDeviceGetEccMode", reinterpret_cast<void*>(&fake_ecc)},
      {"nvmlDeviceGetMigMode", reinterpret_cast<void*>(&fake_mig)},
      {"nvmlDeviceGetPersistenceMode", reinterpret_cast<void*>(&fake_persistence)},
      {"nvmlDeviceGetComputeMode", reinterpret_cast<void*>(&fake_compute)},
      {"nvmlDeviceGetNvLinkState", reinterpret_cast<void*>(&fake_link)},
      {"nvmlDeviceGetNvLinkRemotePciInfo_v2", reinterpret_cast<void*>(&fake_peer)},
      {"nvmlDeviceGetGpuFabricInfo", reinterpret_cast<void*>(&fake_fabric)},
      {"nvmlDeviceGetIndex", reinterpret_cast<void*>(&fake_index)},
      {"nvmlDeviceGetPowerUsage", reinterpret_cast<void*>(&fake_power_usage)},
      {"nvmlDeviceGetTotalEnergyConsumption", reinterpret_cast<void*>(&fake_energy)},
      {"nvmlDeviceGetTemperature", reinterpret_cast<void*>(&fake_temperature)},
      {"nvmlDeviceGetUtilizationRates", reinterpret_cast<void*>(&fake_utilisation)},
      {"nvmlDeviceGetCurrentClocksEventReasons", reinterpret_cast<void*>(&fake_reasons)},
      {"nvmlDeviceGetCurrentClocksThrottleReasons", reinterpret_cast<void*>(&fake_reasons)},
      {"nvmlDeviceGetTotalEccErrors", reinterpret_cast<void*>(&fake_errors)},
      {"nvmlDeviceGetFieldValues", reinterpret_cast<void*>(&fake_fields)}};
  const auto found = table.find(name);
  return found == table.end() || fake->missing.contains(name) ? nullptr : found->second;
}

}  // namespace isoscale::machine
