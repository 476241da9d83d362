// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/facts.hpp"
#include "machine/job_environment.hpp"
#include "machine/nvml.hpp"
#include "preflight/job_facts.hpp"

/// The facts that preflight judges are found out quickly (tens of milliseconds) and without
/// privileges.
namespace isoscale::preflight {

/// The places that facts come from.
struct FactSources {
  std::filesystem::path root = "/";            ///< under which sys, proc and dev stand
  const machine::NvmlLibrary* nvml = nullptr;  ///< not owned; nullptr = not asked
  machine::Lookup environment = machine::process_environment();
};

/// The facts of this node; one rank of each node asks. `machine` is what is known of it already.
/// The node's index is left to the caller.
[[nodiscard]] CheckedNode collect_node(const FactSources& sources,
                                       const machine::MachineFacts& machine);

/// The GPU of a rank, which its node's first rank may not see. Absent where NVML cannot tell of it.
[[nodiscard]] std::optional<CheckedGpu> collect_gpu(const FactSources& sources,
                                                    std::string_view uuid);
/// UUIDs of the GPUs that this process may use.
[[nodiscard]] std::optional<std::vector<std::string>> collect_visible_gpus(
    const FactSources& sources);

/// The facts of this process: binding, limits, environment, launcher. Rank, node, local rank, GPU,
/// versions and the sniff test are left to the caller.
[[nodiscard]] CheckedRank collect_rank(const FactSources& sources,
                                       const machine::MachineFacts& machine);

// The GPUs of a node are found by NVML and on the PCI bus (gpus.cpp).

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

/// Asks NVML about one GPU.
[[nodiscard]] CheckedGpu ask_gpu(const nvml::Functions& nvml, nvml::Device device);

/// Names of the reasons in an answer of nvmlDeviceGetCurrentClocksEventReasons, idleness aside.
[[nodiscard]] std::vector<std::string> names_of_throttle_reasons(unsigned long long bits);

/// The links between each two of them.
[[nodiscard]] std::vector<CheckedPeers> find_peers(const nvml::Functions* nvml,
                                                   const FoundGpus& found);

// Other parts of a node's facts are read out of files below `root` (node_files.cpp); what cannot be
// read is absent.

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
