// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/handle.hpp"

/// Opens the NVIDIA Management Library (NVML) at run time, since it comes with the driver, and
/// machines without a driver must work too.
namespace isoscale::machine {

/// Returns the address of a library's function by its name; nullptr if the library lacks it.
using FindSymbol = std::function<void*(const char* name)>;

/// The part of NVML's C interface that Isoscale uses, declared as in NVML's reference manual,
/// except that enumerations are int. Every function returns 0 for success.
namespace nvml {

using Device = void*;
constexpr int success = 0;
constexpr int not_supported = 3;
/// Codes if a cgroup or a container withholds the GPU.
constexpr int no_permission = 4, operating_system = 17, unknown_error = 999;
constexpr int insufficient_size = 7;
constexpr int graphics_clock = 0, sm_clock = 1, memory_clock = 2;
constexpr unsigned most_links = 18;

/// The layout of nvmlMemory_t.
struct Memory {
  unsigned long long total, free, used;
};

/// The layout of nvmlPciInfo_t, which nvmlDeviceGetPciInfo fills since its version 3.
struct PciInfo {
  std::array<char, 16> short_bus_id;
  unsigned domain, bus, device, device_id, subsystem_id;
  std::array<char, 32> bus_id;
};

/// The layout of nvmlGpuFabricInfo_t: the NVLink domain that a GPU belongs to.
struct FabricInfo {
  std::array<unsigned char, 16> cluster;  ///< all 0 = no domain beyond the node
  int status;
  unsigned clique;
  unsigned char state;
};
constexpr unsigned char fabric_not_supported = 0, fabric_not_started = 1, fabric_in_progress = 2,
                        fabric_completed = 3;

/// The layout of nvmlProcessInfo_v2_t, which nvmlDeviceGetComputeRunningProcesses_v2 fills. Version
/// 3 of the function has another layout in some drivers of branch 535.
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};

/// The layout of nvmlUtilization_t: percent of the last sample period in which a kernel ran or
/// memory was accessed.
struct Utilisation {
  unsigned gpu, memory;
};
constexpr int gpu_temperature = 0;             ///< a value of nvmlTemperatureSensors_t
constexpr int corrected = 0, uncorrected = 1;  ///< values of nvmlMemoryErrorType_t
/// Values of nvmlEccCounterType_t: errors since the driver was loaded, and in the GPU's whole life.
constexpr int volatile_count = 0, aggregate_count = 1;
constexpr unsigned long long idle_reason = 0x01;  ///< the bit nvmlClocksEventReasonGpuIdle
/// Values of nvmlPageRetirementCause_t.
constexpr int several_single_bit_errors = 0, double_bit_error = 1;
/// Values of nvmlGpuP2PCapsIndex_t and of nvmlGpuP2PStatus_t.
constexpr int p2p_read = 0, p2p_write = 1, p2p_nvlink = 2;
constexpr int p2p_ok = 0, p2p_unknown = 6;
/// Values of nvmlGpuTopologyLevel_t.
constexpr int one_board = 0, one_switch = 10, several_switches = 20, host_bridge = 30,
              numa_node = 40, whole_system = 50;

/// The layout of nvmlFieldValue_t. An unsigned int is in the low half of `value`.
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type, answer;
  unsigned long long value;
};
/// Ids of fields: KiB over NVLink since the driver was loaded; power at this moment in mW.
constexpr unsigned nvlink_sent = 138, nvlink_received = 139, power_now = 186;
/// Scopes of a field: the sum over all links, and the GPU without the rest of its module.
constexpr unsigned all_links = ~0U, whole_gpu = 0;
constexpr int unsigned_int = 1, unsigned_long_long = 3;  ///< values of nvmlValueType_t

/// Finds a function of the library by its name, or by the name that older drivers have for it.
struct FindFunction {
  /// An address that converts to any pointer to a function; null if the library lacks the function.
  struct Address {
    void* value;
    template <class Function>
    operator Function*() const {                  // NOLINT: converts on assignment
      return reinterpret_cast<Function*>(value);  // NOLINT: dlsym gives functions as void*
    }
  };
  FindSymbol symbol;

  [[nodiscard]] Address operator()(const char* name, const char* older = nullptr) const {
    void* const found = symbol ? symbol(name) : nullptr;
    return {found == nullptr && older != nullptr && symbol ? symbol(older) : found};
  }
};

/// The functions of the library; those that it lacks are null.
struct Functions {
  FindFunction find{};
  int (*init)() = find("nvmlInit_v2");
  int (*shutdown)() = find("nvmlShutdown");
  int (*driver_version)(char* text, unsigned length) = find("nvmlSystemGetDriverVersion");
  int (*handle_by_uuid)(const char* uuid, Device* device) = find("nvmlDeviceGetHandleByUUID");
  int (*name)(Device, char* text, unsigned length) = find("nvmlDeviceGetName");
  int (*uuid)(Device, char* text, unsigned length) = find("nvmlDeviceGetUUID");
  int (*pci_info)(Device, PciInfo*) = find("nvmlDeviceGetPciInfo_v3");
  int (*memory_info)(Device, Memory*) = find("nvmlDeviceGetMemoryInfo");
  int (*clock_info)(Device, int clock, unsigned* megahertz) = find("nvmlDeviceGetClockInfo");
  int (*max_clock_info)(Device, int clock, unsigned* megahertz) = find("nvmlDeviceGetMaxClockInfo");
  int (*power_limit)(Device, unsigned* milliwatts) = find("nvmlDeviceGetPowerManagementLimit");
  int (*ecc_mode)(Device, int* current, int* pending) = find("nvmlDeviceGetEccMode");
  int (*mig_mode)(Device, unsigned* current, unsigned* pending) = find("nvmlDeviceGetMigMode");
  int (*persistence_mode)(Device, int* mode) = find("nvmlDeviceGetPersistenceMode");
  int (*compute_mode)(Device, int* mode) = find("nvmlDeviceGetComputeMode");
  int (*nvlink_state)(Device, unsigned link, int* active) = find("nvmlDeviceGetNvLinkState");
  int (*nvlink_remote_pci)(Device, unsigned link,
                           PciInfo*) = find("nvmlDeviceGetNvLinkRemotePciInfo_v2");
  int (*fabric_info)(Device, FabricInfo*) = find("nvmlDeviceGetGpuFabricInfo");
  int (*index)(Device, unsigned* index) = find("nvmlDeviceGetIndex");
  int (*power_usage)(Device, unsigned* milliwatts) = find("nvmlDeviceGetPowerUsage");
  int (*total_energy)(Device, unsigned long long* millijoules) =
      find("nvmlDeviceGetTotalEnergyConsumption");  ///< energy since the driver was loaded
  int (*temperature)(Device, int sensor, unsigned* celsius) = find("nvmlDeviceGetTemperature");
  int (*utilisation)(Device, Utilisation*) = find("nvmlDeviceGetUtilizationRates");
  int (*clock_reasons)(Device, unsigned long long* bits) =
      find("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons");
  int (*ecc_errors)(Device, int error, int counter,
                    unsigned long long* count) = find("nvmlDeviceGetTotalEccErrors");
  int (*field_values)(Device, int count, FieldValue*) = find("nvmlDeviceGetFieldValues");
  int (*count)(unsigned* devices) = find("nvmlDeviceGetCount_v2");
  int (*handle_by_index)(unsigned index, Device* device) = find("nvmlDeviceGetHandleByIndex_v2");
  int (*vbios)(Device, char* text, unsigned length) = find("nvmlDeviceGetVbiosVersion");
  int (*application_clock)(Device, int clock,
                           unsigned* megahertz) = find("nvmlDeviceGetApplicationsClock");
  int (*power_limit_default)(Device, unsigned* milliwatts) =
      find("nvmlDeviceGetPowerManagementDefaultLimit");
  int (*remapped_rows)(Device, unsigned* correctable, unsigned* uncorrectable, unsigned* pending,
                       unsigned* failed) = find("nvmlDeviceGetRemappedRows");
  int (*retired_pages)(Device, int cause, unsigned* count,
                       unsigned long long* addresses) = find("nvmlDeviceGetRetiredPages");
  int (*compute_processes)(Device, unsigned* count,
                           ProcessInfo*) = find("nvmlDeviceGetComputeRunningProcesses_v2");
  int (*pcie_generation)(Device,
                         unsigned* generation) = find("nvmlDeviceGetCurrPcieLinkGeneration");
  int (*pcie_generation_max)(Device, unsigned* generation) =
      find("nvmlDeviceGetMaxPcieLinkGeneration");  ///< the highest that GPU and slot support
  int (*pcie_width)(Device, unsigned* lanes) = find("nvmlDeviceGetCurrPcieLinkWidth");
  int (*pcie_width_max)(Device, unsigned* lanes) = find("nvmlDeviceGetMaxPcieLinkWidth");
  int (*common_ancestor)(Device, Device, int* level) = find("nvmlDeviceGetTopologyCommonAncestor");
  int (*p2p_status)(Device, Device, int capability, int* status) = find("nvmlDeviceGetP2PStatus");
};

/// Returns the value that a function of the library writes to its last argument; nullopt if the
/// function is missing or fails.
template <class Result, class Function, class... Arguments>
[[nodiscard]] std::optional<Result> ask(Function* function, Arguments... arguments) {
  Result result{};
  if (function == nullptr || function(arguments..., &result) != nvml::success) return std::nullopt;
  return result;
}

/// Returns the text that a function of the library writes; nullopt if the function is missing or
/// fails.
template <class Function, class... Arguments>
[[nodiscard]] std::optional<std::string> ask_text(Function* function, Arguments... arguments) {
  constexpr std::size_t longest = 96;  // no text of NVML is longer
  std::array<char, longest> text{};
  if (function == nullptr ||
      function(arguments..., text.data(), static_cast<unsigned>(text.size())) != nvml::success) {
    return std::nullopt;
  }
  text.back() = '\0';
  return std::string{text.data()};
}

/// Returns a clock in Hz.
[[nodiscard]] inline std::optional<double> ask_clock(int (*function)(Device, int, unsigned*),
                                                     Device device, int clock) {
  constexpr double megahertz = 1e6;
  const std::optional<unsigned> value = ask<unsigned>(function, device, clock);
  return value ? std::optional{*value * megahertz} : std::nullopt;
}

/// Returns a power in W.
[[nodiscard]] inline std::optional<double> ask_power(int (*function)(Device, unsigned*),
                                                     Device device) {
  const std::optional<unsigned> milliwatts = ask<unsigned>(function, device);
  return milliwatts ? std::optional{*milliwatts * 1e-3} : std::nullopt;
}

/// Returns the GPU or MIG instance with this UUID; nullopt if NVML does not know it.
[[nodiscard]] std::optional<Device> find_device(const Functions& nvml, std::string_view uuid);

}  // namespace nvml

/// Keeps NVML initialised while the object exists. The object has no functions if there is no
/// library or no driver.
class NvmlLibrary {
 public:
  /// Opens the library of this machine.
  [[nodiscard]] static NvmlLibrary open();
  /// Uses the functions that `find` returns instead of a library. Tests use this, and so do ranks
  /// that sample no GPU: their `find` returns none.
  explicit NvmlLibrary(const FindSymbol& find);
  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  /// Returns the functions; nullptr if NVML cannot be used.
  [[nodiscard]] const nvml::Functions* functions() const {
    return initialised_ ? &functions_ : nullptr;
  }

 private:
  using SharedObject = base::Handle<base::GivenBackBy<void*, dlclose>>;
  explicit NvmlLibrary(SharedObject object);
  void initialise();

  SharedObject object_;  ///< the open library; null if there is none, or if `find` was given
  nvml::Functions functions_;
  bool initialised_ = false;
};

}  // namespace isoscale::machine
