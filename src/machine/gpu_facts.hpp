// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/nvml.hpp"
#include "units/quantity.hpp"

namespace isoscale::machine {

/// The facts of one GPU; unknown ones are absent.
struct GpuFacts {
  std::optional<std::string> name, uuid, pci_bus_id, driver_version;
  std::optional<units::Bytes> memory_total, memory_used;  ///< used by all processes
  std::optional<double> sm_clock, sm_clock_max;           ///< Hz
  std::optional<double> memory_clock, memory_clock_max;   ///< Hz
  std::optional<double> power_limit;                      ///< W
  std::optional<bool> ecc, mig, persistence;
  std::optional<std::string> compute_mode;  ///< "default", "exclusive process", ...
  std::optional<int> nvlinks_active;        ///< 0 on a GPU without NVLink
  std::optional<int> nvlinks_inactive;      ///< links that are down or off
  /// PCI bus ids at the other ends of the active links, GPUs or switches, each once, ascending.
  std::optional<std::vector<std::string>> nvlink_peers;
  /// The NVLink domain of several nodes that the GPU belongs to: cluster in hexadecimal, ".",
  /// clique. GPUs with equal texts are joined by NVLink. Absent if there is none.
  std::optional<std::string> fabric;
};

/// Returns the facts of the GPU (or the MIG instance) with this UUID, "GPU-..." as CUDA and
/// nvidia-smi show it. nullopt if NVML cannot be asked or does not know it.
[[nodiscard]] std::optional<GpuFacts> gpu_facts(const NvmlLibrary& library, std::string_view uuid);
[[nodiscard]] GpuFacts gpu_facts(const nvml::Functions& nvml, nvml::Device device);

// These return what a run file stores of the facts of a rank, by key; SCHEMA.md of the results
// lists the keys.
[[nodiscard]] std::map<std::string, std::string> gpu_facts_text(const GpuFacts& facts);
[[nodiscard]] std::map<std::string, double> gpu_facts_number(const GpuFacts& facts);

}  // namespace isoscale::machine
