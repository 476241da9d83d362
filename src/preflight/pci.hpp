// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The kernel knows PCI functions, and what lies between two of them.
namespace isoscale::preflight {

/// Facts of one PCI function; what its files do not tell is absent.
struct PciFacts {
  std::optional<int> generation, generation_max, width, width_max;  ///< of its link; width in lanes
  std::optional<int> numa_node;
  std::optional<std::string> path;  ///< "pci0000:15/0000:15:01.0/0000:16:00.0/0000:1b:00.0"
};
/// `function` is its folder in sysfs, or a link to it.
[[nodiscard]] PciFacts pci_facts(const std::filesystem::path& function);

/// NVML's "00000000:1B:00.0" as sysfs has it: "0000:1b:00.0".
[[nodiscard]] std::string sysfs_bus_id(std::string_view bus_id);

/// "32.0 GT/s PCIe" = 5; nullopt for what is no such speed.
[[nodiscard]] std::optional<int> pcie_generation(std::string_view speed);

/// The closest thing on the paths of two functions: "one switch", "several switches", "host
/// bridge" (below one root complex), "NUMA node", "system". nullopt where a path, or the NUMA node
/// that decides, is not known.
[[nodiscard]] std::optional<std::string> closest_on_paths(const std::optional<std::string>& path_a,
                                                          std::optional<int> numa_a,
                                                          const std::optional<std::string>& path_b,
                                                          std::optional<int> numa_b);

/// The folders of the node's NVIDIA GPUs (display controllers, class 0x0300 and 0x0302), by bus id;
/// nullopt where the kernel shows no PCI bus.
[[nodiscard]] std::optional<std::vector<std::filesystem::path>> nvidia_functions(
    const std::filesystem::path& root);

/// Tells if a function's configuration space (all 4096 bytes) belongs to a switch's downstream port
/// that sends peer traffic up to the root complex: P2P Request or Completion Redirect of its Access
/// Control Services (PCI Express Base Specification, 7.7.11). nullopt when shorter, which is what
/// the kernel gives without privileges.
[[nodiscard]] std::optional<bool> redirects_peers(std::string_view configuration);

/// redirects_peers of any bridge above these functions; nullopt where one is not known and no other
/// does, and where none has a bridge above it.
[[nodiscard]] std::optional<bool> bridges_redirect_peers(
    std::span<const std::filesystem::path> functions);

/// "DMA", "DMA-FQ", "identity", ...: the kind of a function's IOMMU group.
[[nodiscard]] std::optional<std::string> iommu_group_type(const std::filesystem::path& function);

}  // namespace isoscale::preflight
