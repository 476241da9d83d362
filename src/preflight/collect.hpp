// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
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

}  // namespace isoscale::preflight
