// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <utility>

#include "system/cgroup.hpp"
#include "system/preflight/collect.hpp"
#include "system/preflight/node_settings.hpp"
#include "system/sample_files.hpp"

namespace isoscale::system {
namespace {

namespace fs = std::filesystem;

/// "Max locked memory   8388608   8388608   bytes" of proc/self/limits; the first is in force.
void add_locked_memory(CheckedRank& rank, const fs::path& root) {
  constexpr std::string_view line = "Max locked memory", no_limit = "unlimited";
  const std::optional<std::string> limits = read_file((root / "proc/self/limits").string());
  const std::size_t at = limits ? limits->find(line) : std::string::npos;
  if (at == std::string::npos) return;
  std::string_view value = std::string_view{*limits}.substr(at + line.size());
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  rank.locked_memory_unlimited = value.starts_with(no_limit);
  if (!rank.locked_memory_unlimited) rank.locked_memory_limit = leading_number(value);
}

/// Variables that name a file for NCCL to read, where there is none.
std::vector<std::string> missing_files(const FactSources& sources) {
  constexpr std::array<const char*, 4> names{"NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "NCCL_CONF_FILE",
                                             "NCCL_NET_PLUGIN"};
  std::vector<std::string> missing;
  for (const char* const name : names) {
    const std::optional<std::string> file = sources.environment(name);
    const bool is_name = std::string_view{name} == "NCCL_NET_PLUGIN" &&
                         file.value_or("").find('/') == std::string::npos;
    if (is_name) continue;  // of a library, which is looked for along paths
    std::error_code failure;
    if (file && !file->empty() && !fs::exists(below(sources.root, *file), failure)) {
      missing.emplace_back(name);
    }
  }
  return missing;
}

}  // namespace

CheckedRank collect_rank(const FactSources& sources, const MachineFacts& machine) {
  CheckedRank rank;
  rank.pid = getpid();
  rank.cpus = machine.bound_cpus;
  rank.cores = machine.bound_core_ids;
  add_locked_memory(rank, sources.root);
  for (auto& [name, value] : recorded_settings(sources.environment)) {
    rank.environment.emplace(name, std::move(value));
  }
  rank.missing_files = missing_files(sources);
  rank.launcher = launcher_numbers(sources.environment);
  return rank;
}

}  // namespace isoscale::system
