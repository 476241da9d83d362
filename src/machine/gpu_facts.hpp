// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/nvml_library.hpp"

namespace isoscale::machine {

/// The facts of a device on the PCI bus: its PCIe link, with widths in lanes, its NUMA node, and
/// its path from the root of the bus.
struct PciFacts {
  std::optional<int> pcie_generation, pcie_generation_max, pcie_width, pcie_width_max;
  std::optional<int> numa_node;
  std::optional<std::string> pci_path;  ///< "pci0000:15/0000:15:01.0/0000:16:00.0/0000:1b:00.0"
};

/// The facts of one GPU as NVML and sysfs give them; unknown ones are absent. Bytes, hertz and
/// watts are plain numbers, since preflight sends and records these facts as JSON.
struct GpuFacts : PciFacts {
  std::string uuid;        ///< "GPU-..."; "" if NVML does not know the GPU
  std::string pci_bus_id;  ///< in the kernel's form, "0000:1b:00.0"
  std::optional<std::string> name, driver, vbios;
  std::optional<std::string> compute_mode;       ///< "default", "exclusive process", ...
  std::optional<double> memory, memory_used;     ///< bytes; memory_used: by all processes
  std::optional<double> sm_clock, sm_clock_max;  ///< Hz
  std::optional<double> sm_clock_application;    ///< Hz, set by nvidia-smi -ac (not locked by -lgc)
  std::optional<double> memory_clock, memory_clock_max;    ///< Hz
  std::optional<double> power_limit, power_limit_default;  ///< W
  std::optional<bool> ecc, mig, persistence;
  std::optional<int> nvlinks_active;    ///< 0 on a GPU without NVLink
  std::optional<int> nvlinks_inactive;  ///< links that are down or off
  /// The PCI bus ids of the GPUs or switches at the other ends of the active links; each id once,
  /// in ascending order.
  std::optional<std::vector<std::string>> nvlink_peers;
  /// The NVLink domain across nodes that the GPU belongs to: the cluster's id in hexadecimal, ".",
  /// and the number of the clique. GPUs for which this text is the same are joined by NVLink.
  /// Absent if there is no such domain, or if the GPU has not joined it.
  std::optional<std::string> fabric;
  // Only preflight uses the following facts (preflight/collect_facts.hpp).
  std::optional<std::string> fabric_state;  ///< "not supported", "not started", "in progress",
                                            ///< "completed", or "failed: CODE"
  /// The reasons why clocks are reduced now, without "idle": "software power cap", ...
  std::optional<std::vector<std::string>> throttle_reasons;
  std::optional<std::int64_t> ecc_uncorrected;  ///< errors since the driver was loaded
  std::optional<std::int64_t> remapped_rows;    ///< rows remapped after uncorrectable errors
  std::optional<bool> remap_pending, remap_failed;
  std::optional<std::int64_t> retired_pages;  ///< absent on GPUs that remap rows instead
  std::optional<std::vector<int>> xids;  ///< driver error codes in the kernel's log of this boot
  std::optional<std::vector<std::int64_t>> processes;  ///< pids that compute on the GPU now
};

/// Converts the bus id of NVML, "00000000:1B:00.0", or of CUDA, "0000:1B:00.0", to the form of
/// sysfs: "0000:1b:00.0".
[[nodiscard]] std::string sysfs_bus_id(std::string_view bus_id);

/// Returns the facts of the GPU (or the MIG instance) with this UUID, "GPU-..." as CUDA and
/// nvidia-smi show it. nullopt if NVML cannot be asked or does not know the UUID.
[[nodiscard]] std::optional<GpuFacts> gpu_facts(const NvmlLibrary& library, std::string_view uuid);
[[nodiscard]] GpuFacts gpu_facts(const nvml::Functions& nvml, nvml::Device device);

// These functions return the facts that a run file stores for the GPU of a rank, as values by key;
// results/SCHEMA.md lists the keys.
[[nodiscard]] std::map<std::string, std::string> gpu_facts_text(const GpuFacts& facts);
[[nodiscard]] std::map<std::string, double> gpu_facts_number(const GpuFacts& facts);

}  // namespace isoscale::machine
