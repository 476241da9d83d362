// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>

#include "system/facts.hpp"
#include "system/nvml.hpp"
#include "system/preflight/job_facts.hpp"

/// Finding out what preflight judges; quick (tens of milliseconds), and without privileges.
namespace isoscale::system {

/// Where facts come from.
struct FactSources {
  std::filesystem::path root = "/";   ///< under which sys, proc and dev stand
  const NvmlLibrary* nvml = nullptr;  ///< not owned; nullptr = not asked
  Lookup environment = process_environment();
};

/// Of this node; one rank of each node asks. `machine` is what is known of it already. The node's
/// index is left to the caller.
[[nodiscard]] CheckedNode collect_node(const FactSources& sources, const MachineFacts& machine);

/// Of this process: binding, limits, environment, launcher. Rank, node, local rank, GPU, versions
/// and the sniff test are left to the caller.
[[nodiscard]] CheckedRank collect_rank(const FactSources& sources, const MachineFacts& machine);

}  // namespace isoscale::system
