// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "machine/gpu_facts.hpp"

/// Facts about PCI functions, and about the path between two of them, as the kernel shows them.
namespace isoscale::preflight {

/// Returns the facts of a function; a fact is absent if the kernel has no file for it. `function`
/// is its folder in sysfs, or a link to it.
[[nodiscard]] machine::PciFacts pci_facts(const std::filesystem::path& function);

/// Converts NVML's "00000000:1B:00.0" to the form of sysfs: "0000:1b:00.0".
[[nodiscard]] std::string sysfs_bus_id(std::string_view bus_id);

/// Returns the generation with this speed: 5 for "32.0 GT/s PCIe"; nullopt if there is none.
[[nodiscard]] std::optional<int> pcie_generation(std::string_view speed);

/// Returns the closest element that the paths of two functions share: "one switch", "several
/// switches", "host bridge" (below one root complex), "NUMA node", "system". nullopt if a path is
/// unknown, or if only the NUMA nodes can decide and one of them is unknown.
[[nodiscard]] std::optional<std::string> closest_on_paths(const std::optional<std::string>& path_a,
                                                          std::optional<int> numa_a,
                                                          const std::optional<std::string>& path_b,
                                                          std::optional<int> numa_b);

/// Returns the folders of the node's NVIDIA GPUs (display controllers, class 0x0300 and 0x0302), by
/// bus id; nullopt if the kernel shows no PCI bus.
[[nodiscard]] std::optional<std::vector<std::filesystem::path>> nvidia_functions(
    const std::filesystem::path& root);

/// True if a function's configuration space (all 4096 bytes) belongs to a switch's downstream port
/// that redirects peer traffic to the root complex: P2P Request or Completion Redirect of its
/// Access Control Services (PCI Express Base Specification, 7.7.11). nullopt if the configuration
/// is shorter, as the kernel gives it without privileges.
[[nodiscard]] std::optional<bool> redirects_peers(std::string_view configuration);

/// True if redirects_peers() is true for any bridge above these functions. nullopt if none
/// redirects but one is unknown, or if there is no bridge above them.
[[nodiscard]] std::optional<bool> bridges_redirect_peers(
    std::span<const std::filesystem::path> functions);

/// Returns the type of a function's IOMMU group: "DMA", "DMA-FQ", "identity", ...
[[nodiscard]] std::optional<std::string> iommu_group_type(const std::filesystem::path& function);

}  // namespace isoscale::preflight
