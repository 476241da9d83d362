// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/job_environment.hpp"
#include "preflight/job_facts.hpp"

/// Parts of a node's facts are read here, each out of files below `root`; what cannot be read is
/// absent.
namespace isoscale::preflight {

/// "0-3,8" = 0, 1, 2, 3, 8; nullopt for what is no such list. Nothing is an empty list.
[[nodiscard]] std::optional<std::vector<int>> cpu_list(std::string_view text);
/// Logical CPUs by NUMA node, "0", "1", ...; a node of memory alone has none.
[[nodiscard]] std::map<std::string, std::vector<int>> numa_cpus(const std::filesystem::path& root);
/// CPUs by frequency governor.
[[nodiscard]] std::optional<std::map<std::string, int>> governors(
    const std::filesystem::path& root);

/// The driver that sets frequencies of CPUs, of several the first by name: "intel_pstate".
[[nodiscard]] std::optional<std::string> frequency_driver(const std::filesystem::path& root);
/// CPUs by energy preference, where the driver has such.
[[nodiscard]] std::optional<std::map<std::string, int>> energy_preferences(
    const std::filesystem::path& root);

/// Tells if an IOMMU translates what devices access: the groups of `functions` (folders of PCI
/// functions), or all where none of those is in one.
[[nodiscard]] std::optional<bool> iommu_translates(
    const std::filesystem::path& root, const std::vector<std::filesystem::path>& functions);

/// Tells if one of these kernel modules is loaded.
[[nodiscard]] std::optional<bool> has_module(const std::filesystem::path& root,
                                             std::initializer_list<std::string_view> names);
/// Tells if GPU memory can be exported as dma-buf: Linux 5.12 and NVIDIA's open kernel modules
/// (NVIDIA, CUDA Driver API, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED; GPUDirect RDMA manual).
[[nodiscard]] std::optional<bool> has_dmabuf(const std::filesystem::path& root);

/// Ports of the InfiniBand and RoCE adapters, by adapter and number.
[[nodiscard]] std::optional<std::vector<CheckedPort>> find_ports(const std::filesystem::path& root);
/// The folders of those adapters' PCI functions.
[[nodiscard]] std::vector<std::filesystem::path> adapter_functions(
    const std::filesystem::path& root);

/// File names of NCCL's plugins and of SHARP, by name, each once: along LD_LIBRARY_PATH and in the
/// loader's cache. Nothing is loaded.
[[nodiscard]] std::optional<std::vector<std::string>> nccl_plugins(
    const std::filesystem::path& root, const machine::Lookup& environment);

/// `file` below `root` when it is absolute; else as it is.
[[nodiscard]] std::filesystem::path below(const std::filesystem::path& root,
                                          const std::filesystem::path& file);

/// The kernel's messages since it started, as far as it or the system's log still has them: of
/// dev/kmsg, else of var/log/kern.log. Never waits, and reads no more than 16 MiB. nullopt where
/// neither may be read, or holds nothing of this boot.
[[nodiscard]] std::optional<std::string> kernel_log(const std::filesystem::path& root);

/// Codes of the driver's error reports by PCI bus id ("0000:1b:00.0"), each once, in order of first
/// appearance: "NVRM: Xid (PCI:0000:1b:00): 79, ..." (NVIDIA, XID Errors).
[[nodiscard]] std::map<std::string, std::vector<int>> xids_in(std::string_view log);

}  // namespace isoscale::preflight
