// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "system/preflight/job_view.hpp"
#include "system/preflight/rules.hpp"
#include "units/text.hpp"

/// What nodes grant: memory that may be locked or shared, clocks of CPUs.
namespace isoscale::system {
namespace {

constexpr double mebibyte = 1024.0 * 1024;

std::string bytes(double value) {
  return units::format(units::Bytes{static_cast<std::uint64_t>(value)});
}

/// Adapters register what they send from: memory that the kernel must not move.
Results judge_locked_memory(const JobFacts& job) {
  Findings findings;
  const auto judge = [&](const CheckedRank& rank, const CheckedNode* node) -> std::string {
    if (node == nullptr || !has_up_port(*node)) return {};
    if (!rank.locked_memory_unlimited && !rank.locked_memory_limit) {
      findings.miss();
      return {};
    }
    findings.know();
    if (rank.locked_memory_unlimited) return {};
    return fmt::format("locked memory is limited to {}", bytes(*rank.locked_memory_limit));
  };
  for_ranks(job, judge, [&](Place place, const std::string& text) {
    findings.warn(std::move(place),
                  {.what = text,
                   .cost = "buffers cannot be registered with the adapter: connections fail, or "
                           "fall back to TCP",
                   .fix = "ulimit -l unlimited (limits.conf; LimitMEMLOCK=infinity for slurmd; "
                          "docker --ulimit memlock=-1)"});
  });
  return std::move(findings).results(
      {.fine = "no limit on nodes with InfiniBand or RoCE",
       .unknown = "no node has an InfiniBand or RoCE port that is known to be up"});
}

/// NVIDIA recommends 1 GiB for NCCL in containers (NCCL documentation, Troubleshooting, Runtime and
/// MPI issues: --shm-size=1g), whose own default is 64 MiB. Fewer than 16 ranks need less: NCCL's
/// segments have about 4 MiB each, of which 64 MiB hold those for 16 peers.
double shared_memory_need(std::size_t ranks) {
  constexpr double each = 64 * mebibyte, most = 1024 * mebibyte;
  return std::min(most, each * static_cast<double>(ranks));
}

Results judge_shared_memory(const JobFacts& job) {
  Findings findings;
  for (const NodeRanks& node : nodes_of_ranks(job)) {
    if (node.facts == nullptr || !findings.knows(node.facts->shm_free)) continue;
    const double need = shared_memory_need(node.ranks.size());
    if (*node.facts->shm_free >= need) continue;
    findings.warn(
        {.host = node.host()},
        {.what = fmt::format("/dev/shm has {} free, {} want {}", bytes(*node.facts->shm_free),
                             base::counted(node.ranks.size(), "rank"), bytes(need)),
         .cost = "NCCL and MPI fail, or talk inside the node by slower means",
         .fix = "docker --shm-size=1g or --ipc=host; remove files left behind in "
                "/dev/shm"});
  }
  return std::move(findings).results({.fine = "/dev/shm has room for what ranks share",
                                      .unknown = "/dev/shm gives no information",
                                      .how = "mount /dev/shm"});
}

/// CPUs with one of these settings, and all CPUs.
std::pair<int, int> count_cpus(const std::map<std::string, int>& settings,
                               std::initializer_list<std::string_view> wanted) {
  int found = 0, all = 0;
  for (const auto& [setting, cpus] : settings) {
    all += cpus;
    if (std::ranges::find(wanted, setting) != wanted.end()) found += cpus;
  }
  return {found, all};
}

/// In the active modes of intel_pstate and amd-pstate-epp "powersave" is the dynamic default, and
/// the energy preference decides (Linux kernel documentation, CPU Performance Scaling); "" = fine.
std::string saving_cpus(const CheckedNode& node) {
  const bool is_active =
      node.frequency_driver == "intel_pstate" || node.frequency_driver == "amd-pstate-epp";
  if (!is_active) {
    const auto [saving, all] = count_cpus(*node.governors, {"powersave"});
    if (saving == 0) return {};
    return fmt::format("{} of {} CPUs have the frequency governor powersave", saving, all);
  }
  if (!node.energy_preferences) return {};
  const auto [saving, all] = count_cpus(*node.energy_preferences, {"power", "balance_power"});
  if (saving == 0) return {};
  return fmt::format("{} of {} CPUs prefer to save energy (energy_performance_preference)", saving,
                     all);
}

Results judge_governor(const JobFacts& job) {
  Findings findings;
  for (const CheckedNode& node : job.nodes) {
    if (!findings.knows(node.governors)) continue;
    std::string what = saving_cpus(node);
    if (what.empty()) continue;
    findings.warn({.host = node.host},
                  {.what = std::move(what),
                   .cost = "clocks may stay low or rise late: launches and small messages take "
                           "longer",
                   .fix = "cpupower frequency-set -g performance"});
  }
  return std::move(findings).results({.fine = "no CPU is set to save power",
                                      .unknown = "the kernel reports no governor, as in virtual "
                                                 "machines"});
}

constexpr std::array node_table{
    Check{"locked-memory", "the limit on locked memory on nodes with InfiniBand or RoCE",
          judge_locked_memory},
    Check{"shared-memory", "free space of /dev/shm against ranks of the node", judge_shared_memory},
    Check{"cpu-governor", "whether CPUs save power", judge_governor},
};

}  // namespace

std::span<const Check> node_checks() { return node_table; }

}  // namespace isoscale::system
