// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "machine/facts.hpp"
#include "machine/job_environment.hpp"
#include "machine/nvml_library.hpp"
#include "preflight/job_facts.hpp"

/// Collects the facts about nodes and ranks that preflight, the check before a run, judges. This
/// takes tens of milliseconds and needs no privileges.
namespace isoscale::preflight {

/// The sources that facts are read from.
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

namespace nvml = machine::nvml;

/// Adds the GPUs of a node with their Xids (driver error codes), and how each pair of GPUs is
/// linked (collect_gpus.cpp). GPUs that NVML lists come first, in its order; then those that only
/// the PCI bus shows. `gpus` stays absent if neither could be asked, and `gpus_lost` if NVML could
/// not.
void add_gpus(CheckedNode& node, const FactSources& sources);

/// Adds to each GPU the Xids (error codes of NVIDIA's driver) that the kernel's log reports for it
/// (kernel_log.cpp). A GPU without such messages gets an empty list.
void add_xids(std::vector<GpuFacts>& gpus, const std::filesystem::path& root);

// The functions below read what the kernel's files show about PCI functions and about the path
// between two of them (pci_facts.cpp).

/// Returns the facts of a PCI function; a fact is absent if the kernel has no file for it, or does
/// not know it. `function` is its folder in sysfs, or a link to it.
[[nodiscard]] machine::PciFacts pci_facts(const std::filesystem::path& function);

/// True if a PCI function is the downstream port of a switch and sends the traffic between devices
/// below the switch up to the root complex: P2P Request Redirect or P2P Completion Redirect is on
/// in its Access Control Services (PCI Express Base Specification, 7.7.11). `configuration` must be
/// the whole configuration space of 4096 bytes. nullopt if it is shorter, since the kernel shows
/// unprivileged users only its beginning.
[[nodiscard]] std::optional<bool> redirects_peers(std::string_view configuration);

/// Asks redirects_peers() about each bridge above these PCI functions. Returns true if the answer
/// is true for any bridge, and false if it is false for all bridges. Otherwise, and if there is no
/// bridge above them, returns nullopt.
[[nodiscard]] std::optional<bool> bridges_redirect_peers(
    std::span<const std::filesystem::path> functions);

}  // namespace isoscale::preflight
