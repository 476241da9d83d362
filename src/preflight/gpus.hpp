// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/nvml.hpp"
#include "preflight/job_facts.hpp"

/// The GPUs of a node are found by NVML and on the PCI bus.
namespace isoscale::preflight {

namespace nvml = machine::nvml;

/// The GPUs of a node: NVML's by its index, then those that only the PCI bus shows.
struct FoundGpus {
  std::optional<std::vector<CheckedGpu>> gpus;  ///< absent: neither could be asked
  std::vector<nvml::Device> handles;            ///< of the first of them; the others are not NVML's
  std::optional<int> lost;                      ///< absent: NVML could not be asked
};
/// `nvml` may be nullptr. Not filled in: Xids.
[[nodiscard]] FoundGpus find_gpus(const nvml::Functions* nvml, const std::filesystem::path& root);

/// The GPU with this UUID, as NVML and sysfs know it; absent where NVML does not. Not filled in:
/// Xids.
[[nodiscard]] std::optional<CheckedGpu> find_gpu(const nvml::Functions& nvml, std::string_view uuid,
                                                 const std::filesystem::path& root);
/// UUIDs of the GPUs that this process may use: control groups can leave it a few of the node's.
[[nodiscard]] std::optional<std::vector<std::string>> visible_gpus(const nvml::Functions& nvml);

/// True if one has a link to the other, or both to one switch.
[[nodiscard]] bool joined_by_nvlinks(const CheckedGpu& a, const CheckedGpu& b);

/// Asks NVML about one GPU.
[[nodiscard]] CheckedGpu ask_gpu(const nvml::Functions& nvml, nvml::Device device);

/// Names of the reasons in an answer of nvmlDeviceGetCurrentClocksEventReasons, idleness aside.
[[nodiscard]] std::vector<std::string> names_of_throttle_reasons(unsigned long long bits);

/// The links between each two of them.
[[nodiscard]] std::vector<CheckedPeers> find_peers(const nvml::Functions* nvml,
                                                   const FoundGpus& found);

}  // namespace isoscale::preflight
