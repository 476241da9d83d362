// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "machine/facts.hpp"
#include "machine/job_environment.hpp"
#include "machine/nvml.hpp"
#include "preflight/job_facts.hpp"

/// Collects the facts that preflight judges, quickly (in tens of milliseconds) and without
/// privileges.
namespace isoscale::preflight {

/// The sources that facts are collected from.
struct FactSources {
  std::filesystem::path root = "/";            ///< the folder with sys, proc and dev
  const machine::NvmlLibrary* nvml = nullptr;  ///< not owned; nullptr = NVML is not used
  machine::Lookup environment = machine::process_environment();

  /// Returns NVML's functions; nullptr if it cannot be asked.
  [[nodiscard]] const machine::nvml::Functions* functions() const {
    return nvml == nullptr ? nullptr : nvml->functions();
  }
};

/// Collects the facts of this node; one rank of each node calls it. `machine` holds the facts that
/// are already known. The caller sets the node's index.
[[nodiscard]] CheckedNode collect_node(const FactSources& sources,
                                       const machine::MachineFacts& machine);

/// Returns the facts of a rank's GPU, for which NVML is asked on the rank itself: the rank that
/// calls collect_node() may not see this GPU. Absent if NVML does not know the GPU. Xids (error
/// codes of the driver) are not filled in.
[[nodiscard]] std::optional<GpuFacts> collect_gpu(const FactSources& sources,
                                                  std::string_view uuid);
/// Returns the UUIDs of the GPUs that this process may use, which can be fewer than the node has if
/// a control group limits them; absent if NVML cannot be asked.
[[nodiscard]] std::optional<std::vector<std::string>> collect_visible_gpus(
    const FactSources& sources);

/// Collects the facts of this process: binding, limits, environment, launcher. The caller sets
/// rank, node, local rank, GPU, versions and the sniff test.
[[nodiscard]] CheckedRank collect_rank(const FactSources& sources,
                                       const machine::MachineFacts& machine);

// These functions find the GPUs of a node with NVML and on the PCI bus (gpus.cpp).

namespace nvml = machine::nvml;

/// The GPUs of a node: first those that NVML lists, by its index, then those that only the PCI bus
/// shows.
struct FoundGpus {
  std::optional<std::vector<GpuFacts>> gpus;  ///< absent: no source could be asked
  std::vector<nvml::Device> handles;          ///< for the GPUs of NVML, the first in `gpus`
  std::optional<int> lost;  ///< GPUs that NVML cannot reach; absent: NVML could not be asked
};
/// Finds the GPUs of a node. `nvml` may be nullptr. Xids are not filled in.
[[nodiscard]] FoundGpus find_gpus(const nvml::Functions* nvml, const std::filesystem::path& root);

/// Returns the link between each pair of GPUs.
[[nodiscard]] std::vector<CheckedPeers> find_peers(const nvml::Functions* nvml,
                                                   const FoundGpus& found);

// The functions below read facts about PCI functions, and about the path between two of them, as
// the kernel shows them (pci.cpp).

/// Returns the facts of a PCI function; a fact is absent if the kernel has no file for it.
/// `function` is its folder in sysfs, or a link to it.
[[nodiscard]] machine::PciFacts pci_facts(const std::filesystem::path& function);

/// Converts NVML's "00000000:1B:00.0" to the form of sysfs: "0000:1b:00.0".
[[nodiscard]] std::string sysfs_bus_id(std::string_view bus_id);

/// Returns the PCIe generation that has this speed: 5 for "32.0 GT/s PCIe"; nullopt if there is
/// none.
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
/// that redirects peer traffic to the root complex: its Access Control Services have P2P Request
/// Redirect or P2P Completion Redirect on (PCI Express Base Specification, 7.7.11). nullopt if the
/// configuration is shorter, since the kernel shows unprivileged users only its beginning.
[[nodiscard]] std::optional<bool> redirects_peers(std::string_view configuration);

/// True if redirects_peers() is true for any bridge above these functions. nullopt if none is known
/// to redirect and at least one is unknown, or if there is no bridge above them.
[[nodiscard]] std::optional<bool> bridges_redirect_peers(
    std::span<const std::filesystem::path> functions);

// The functions below read other facts of a node from files below `root` (node_files.cpp). A fact
// that cannot be read is absent.

/// Returns the number of CPUs for each content of a file that each CPU has in its folder in sysfs:
/// "cpufreq/scaling_governor".
[[nodiscard]] std::optional<std::map<std::string, int>> cpus_by(const std::filesystem::path& root,
                                                                const char* file);

/// True if an IOMMU translates the addresses that devices access. The IOMMU groups of `functions`
/// (folders of PCI functions) decide, or all groups if none of the functions is in a group.
[[nodiscard]] std::optional<bool> iommu_translates(
    const std::filesystem::path& root, const std::vector<std::filesystem::path>& functions);

/// True if one of these kernel modules is loaded.
[[nodiscard]] std::optional<bool> has_module(const std::filesystem::path& root,
                                             std::initializer_list<std::string_view> names);
/// True if GPU memory can be exported as dma-buf, which needs Linux 5.12 and NVIDIA's open kernel
/// modules (NVIDIA, CUDA Driver API, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED; GPUDirect RDMA manual).
[[nodiscard]] std::optional<bool> has_dmabuf(const std::filesystem::path& root);

/// Returns the ports of the InfiniBand and RoCE adapters, by adapter and number.
[[nodiscard]] std::optional<std::vector<CheckedPort>> find_ports(const std::filesystem::path& root);
/// Returns the folders of the adapters' PCI functions.
[[nodiscard]] std::vector<std::filesystem::path> adapter_functions(
    const std::filesystem::path& root);

/// Returns the file names of NCCL's plugins and of SHARP, by name, each once. It searches
/// LD_LIBRARY_PATH and the loader's cache, and loads nothing.
[[nodiscard]] std::optional<std::vector<std::string>> nccl_plugins(
    const std::filesystem::path& root, const machine::Lookup& environment);

/// Returns `file` below `root` if it is absolute; else `file` itself.
[[nodiscard]] std::filesystem::path below(const std::filesystem::path& root,
                                          const std::filesystem::path& file);

/// Returns the kernel's messages since it started, as far as they are still kept: from dev/kmsg,
/// else from var/log/kern.log. It never waits, and reads no more than 16 MiB. nullopt if neither
/// file can be read, or neither has messages of this boot.
[[nodiscard]] std::optional<std::string> kernel_log(const std::filesystem::path& root);

/// Returns the codes of the driver's error reports by PCI bus id ("0000:1b:00.0"), each once, in
/// order of first appearance: "NVRM: Xid (PCI:0000:1b:00): 79, ..." (NVIDIA, XID Errors).
[[nodiscard]] std::map<std::string, std::vector<int>> xids_in(std::string_view log);

}  // namespace isoscale::preflight
