// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "machine/nvml.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>
#include <utility>

namespace isoscale::machine {
namespace {

template <class Function>
void find_into(Function*& function, const FindSymbol& find, const char* name) {
  function = reinterpret_cast<Function*>(find(name));  // NOLINT: dlsym gives functions as void*
}

/// Finds the functions for a GPU's identity and settings.
void find_settings(nvml::Functions& found, const FindSymbol& find) {
  find_into(found.init, find, "nvmlInit_v2");
  find_into(found.shutdown, find, "nvmlShutdown");
  find_into(found.driver_version, find, "nvmlSystemGetDriverVersion");
  find_into(found.handle_by_uuid, find, "nvmlDeviceGetHandleByUUID");
  find_into(found.name, find, "nvmlDeviceGetName");
  find_into(found.uuid, find, "nvmlDeviceGetUUID");
  find_into(found.pci_info, find, "nvmlDeviceGetPciInfo_v3");
  find_into(found.memory_info, find, "nvmlDeviceGetMemoryInfo");
  find_into(found.clock_info, find, "nvmlDeviceGetClockInfo");
  find_into(found.max_clock_info, find, "nvmlDeviceGetMaxClockInfo");
  find_into(found.power_limit, find, "nvmlDeviceGetPowerManagementLimit");
  find_into(found.ecc_mode, find, "nvmlDeviceGetEccMode");
  find_into(found.mig_mode, find, "nvmlDeviceGetMigMode");
  find_into(found.persistence_mode, find, "nvmlDeviceGetPersistenceMode");
  find_into(found.compute_mode, find, "nvmlDeviceGetComputeMode");
  find_into(found.nvlink_state, find, "nvmlDeviceGetNvLinkState");
  find_into(found.nvlink_remote_pci, find, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  find_into(found.fabric_info, find, "nvmlDeviceGetGpuFabricInfo");
  find_into(found.index, find, "nvmlDeviceGetIndex");
  find_into(found.count, find, "nvmlDeviceGetCount_v2");
  find_into(found.handle_by_index, find, "nvmlDeviceGetHandleByIndex_v2");
  find_into(found.vbios, find, "nvmlDeviceGetVbiosVersion");
  find_into(found.application_clock, find, "nvmlDeviceGetApplicationsClock");
  find_into(found.power_limit_default, find, "nvmlDeviceGetPowerManagementDefaultLimit");
}

/// Finds the functions for a GPU's state and health.
void find_state(nvml::Functions& found, const FindSymbol& find) {
  find_into(found.power_usage, find, "nvmlDeviceGetPowerUsage");
  find_into(found.total_energy, find, "nvmlDeviceGetTotalEnergyConsumption");
  find_into(found.temperature, find, "nvmlDeviceGetTemperature");
  find_into(found.utilisation, find, "nvmlDeviceGetUtilizationRates");
  find_into(found.clock_reasons, find, "nvmlDeviceGetCurrentClocksEventReasons");
  if (found.clock_reasons == nullptr) {  // its name before driver 535
    find_into(found.clock_reasons, find, "nvmlDeviceGetCurrentClocksThrottleReasons");
  }
  find_into(found.ecc_errors, find, "nvmlDeviceGetTotalEccErrors");
  find_into(found.field_values, find, "nvmlDeviceGetFieldValues");
  find_into(found.remapped_rows, find, "nvmlDeviceGetRemappedRows");
  find_into(found.retired_pages, find, "nvmlDeviceGetRetiredPages");
  find_into(found.compute_processes, find, "nvmlDeviceGetComputeRunningProcesses_v3");
  if (found.compute_processes == nullptr) {  // its name before driver 510; the same structure
    find_into(found.compute_processes, find, "nvmlDeviceGetComputeRunningProcesses_v2");
  }
  find_into(found.pcie_generation, find, "nvmlDeviceGetCurrPcieLinkGeneration");
  find_into(found.pcie_generation_max, find, "nvmlDeviceGetMaxPcieLinkGeneration");
  find_into(found.pcie_width, find, "nvmlDeviceGetCurrPcieLinkWidth");
  find_into(found.pcie_width_max, find, "nvmlDeviceGetMaxPcieLinkWidth");
  find_into(found.common_ancestor, find, "nvmlDeviceGetTopologyCommonAncestor");
  find_into(found.p2p_status, find, "nvmlDeviceGetP2PStatus");
}

}  // namespace

void NvmlLibrary::SharedObjectTraits::free(type object) noexcept { dlclose(object); }

NvmlLibrary NvmlLibrary::open() {
  return NvmlLibrary{SharedObject{dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)}};
}

NvmlLibrary::NvmlLibrary(SharedObject object) : object_(std::move(object)) {
  if (object_) initialise([&](const char* name) { return dlsym(object_.get(), name); });
}

NvmlLibrary::NvmlLibrary(const FindSymbol& find) { initialise(find); }

NvmlLibrary::~NvmlLibrary() {
  if (initialised_ && functions_.shutdown != nullptr) functions_.shutdown();
}

void NvmlLibrary::initialise(const FindSymbol& find) {
  find_settings(functions_, find);
  find_state(functions_, find);
  initialised_ = functions_.init != nullptr && functions_.init() == nvml::success;
}

/// The UUID of a MIG instance begins otherwise in NVML than in CUDA, so both forms are tried.
std::optional<nvml::Device> nvml::find_device(const Functions& nvml, std::string_view uuid) {
  constexpr std::string_view whole = "GPU-", instance = "MIG-";
  if (const auto device = ask<Device>(nvml.handle_by_uuid, std::string{uuid}.c_str())) {
    return device;
  }
  if (!uuid.starts_with(whole)) return std::nullopt;
  const std::string other = fmt::format("{}{}", instance, uuid.substr(whole.size()));
  return ask<Device>(nvml.handle_by_uuid, other.c_str());
}

}  // namespace isoscale::machine
