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

/// Collects the facts about nodes and ranks that preflight, the check before a run, judges. This
/// takes tens of milliseconds and needs no privileges.
namespace isoscale::preflight {

/// The places where facts are looked for.
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
/// are already known. The `node` index of the result is not set.
[[nodiscard]] CheckedNode collect_node(const FactSources& sources,
                                       const machine::MachineFacts& machine);

/// Returns the facts of this rank's own GPU; absent if NVML does not know the GPU. Each rank must
/// ask NVML itself, since the rank that calls collect_node() may not see this GPU. Xids (error
/// codes of the driver) are not filled in.
[[nodiscard]] std::optional<GpuFacts> collect_gpu(const FactSources& sources,
                                                  std::string_view uuid);
/// Returns the UUIDs of the GPUs that this process may use; absent if NVML cannot be asked. These
/// can be fewer than the node's GPUs if a control group limits them.
[[nodiscard]] std::optional<std::vector<std::string>> collect_visible_gpus(
    const FactSources& sources);

/// Collects the facts of this process: its id, the CPUs it may run on, the limit of locked memory,
/// environment and launcher. The caller sets all other members: rank, node, local rank, GPUs, BLAS
/// threads, versions and the results of the sniff test (a short measurement).
[[nodiscard]] CheckedRank collect_rank(const FactSources& sources,
                                       const machine::MachineFacts& machine);

// These functions find the GPUs of a node with NVML and on the PCI bus (gpus.cpp).

namespace nvml = machine::nvml;

/// The GPUs of a node: first those that NVML lists, in NVML's order, then those that only the PCI
/// bus shows.
struct FoundGpus {
  /// The facts of the GPUs; absent: neither NVML nor the PCI bus could be asked.
  std::optional<std::vector<GpuFacts>> gpus;
  /// NVML's handles of the first GPUs in `gpus`, in the same order.
  std::vector<nvml::Device> handles;
  std::optional<int> lost;  ///< GPUs that NVML cannot reach; absent: NVML could not be asked
};
/// Finds the GPUs of a node. `nvml` may be nullptr. Xids (error codes of the driver) are not filled
/// in.
[[nodiscard]] FoundGpus find_gpus(const nvml::Functions* nvml, const std::filesystem::path& root);

/// Returns how each pair of the GPUs is linked.
[[nodiscard]] std::vector<CheckedPeers> find_peers(const nvml::Functions* nvml,
                                                   const FoundGpus& found);

// The functions below read what the kernel's files show about PCI functions and about the path
// between two of them (pci.cpp).

/// Returns the facts of a PCI function; a fact is absent if the kernel has no file for it, or does
/// not know it. `function` is its folder in sysfs, or a link to it.
[[nodiscard]] machine::PciFacts pci_facts(const std::filesystem::path& function);

/// Converts NVML's "00000000:1B:00.0" to the form of sysfs: "0000:1b:00.0".
[[nodiscard]] std::string sysfs_bus_id(std::string_view bus_id);

/// Returns the PCIe generation that has this speed: 5 for "32.0 GT/s PCIe"; nullopt if no
/// generation has it.
[[nodiscard]] std::optional<int> pcie_generation(std::string_view speed);

/// Returns the sysfs folders of the node's NVIDIA GPUs (display controllers, class 0x0300 and
/// 0x0302), in the order of bus ids; nullopt if the kernel shows no PCI bus.
[[nodiscard]] std::optional<std::vector<std::filesystem::path>> nvidia_functions(
    const std::filesystem::path& root);

/// True if a PCI function is the downstream port of a switch and sends the traffic between devices
/// below the switch up to the root complex: P2P Request Redirect or P2P Completion Redirect is on
/// in its Access Control Services (PCI Express Base Specification, 7.7.11). `configuration` must be
/// the whole configuration space of 4096 bytes. nullopt if it is shorter, since the kernel shows
/// unprivileged users only its beginning.
[[nodiscard]] std::optional<bool> redirects_peers(std::string_view configuration);

/// Asks redirects_peers() about each bridge above these functions. Returns true if the answer is
/// true for any bridge, and false if it is false for all bridges. Otherwise, and if there is no
/// bridge above them, returns nullopt.
[[nodiscard]] std::optional<bool> bridges_redirect_peers(
    std::span<const std::filesystem::path> functions);

// The functions below read other facts of a node from files below `root` (node_files.cpp). A fact
// that cannot be read is absent.

/// Reads a file that each CPU has in its sysfs folder, such as "cpufreq/scaling_governor". Returns
/// the number of CPUs for each content of the file.
[[nodiscard]] std::optional<std::map<std::string, int>> cpus_by(const std::filesystem::path& root,
                                                                const char* file);

/// True if an IOMMU translates the addresses that devices access. `functions` are folders of PCI
/// functions. Their IOMMU groups are examined, or all groups of the node if none of the functions
/// is in a group.
[[nodiscard]] std::optional<bool> iommu_translates(
    const std::filesystem::path& root, const std::vector<std::filesystem::path>& functions);

/// True if at least one of these kernel modules is loaded.
[[nodiscard]] std::optional<bool> has_module(const std::filesystem::path& root,
                                             std::initializer_list<std::string_view> names);
/// True if GPU memory can be exported as dma-buf, which needs Linux 5.12 or later and NVIDIA's open
/// kernel modules (NVIDIA, CUDA Driver API, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED; GPUDirect RDMA
/// manual).
[[nodiscard]] std::optional<bool> has_dmabuf(const std::filesystem::path& root);

/// Returns the ports of the InfiniBand and RoCE adapters, in the order of adapters and port
/// numbers.
[[nodiscard]] std::optional<std::vector<CheckedPort>> find_ports(const std::filesystem::path& root);
/// Returns the sysfs folders of the PCI functions of InfiniBand and RoCE adapters.
[[nodiscard]] std::vector<std::filesystem::path> adapter_functions(
    const std::filesystem::path& root);

/// Returns the file names of the NCCL plugins and SHARP libraries that are installed, in
/// alphabetical order, each once. It searches LD_LIBRARY_PATH and the loader's cache, and loads no
/// library.
[[nodiscard]] std::optional<std::vector<std::string>> nccl_plugins(
    const std::filesystem::path& root, const machine::Lookup& environment);

/// Returns `file` with `root` in front if `file` is an absolute path; else `file` itself.
[[nodiscard]] std::filesystem::path below(const std::filesystem::path& root,
                                          const std::filesystem::path& file);

/// Returns the kernel's messages since the kernel started, as far as they are still kept. They are
/// read from dev/kmsg or, if that is impossible, from var/log/kern.log. It never waits for
/// messages, and reads no more than 16 MiB. nullopt if neither file can be read, or neither has
/// messages of this boot.
[[nodiscard]] std::optional<std::string> kernel_log(const std::filesystem::path& root);

/// Returns the Xids (error codes of NVIDIA's driver) in a kernel log, by PCI bus id
/// ("0000:1b:00.0"). Each code is listed once, in the order of first appearance. A message looks
/// like "NVRM: Xid (PCI:0000:1b:00): 79, ..." (NVIDIA, XID Errors).
[[nodiscard]] std::map<std::string, std::vector<int>> xids_in(std::string_view log);

}  // namespace isoscale::preflight
