// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/text.hpp"
#include "preflight/job_view.hpp"
#include "preflight/rules.hpp"
#include "units/text.hpp"

/// These rules check the resources of nodes: cores that ranks may run on, memory that may be locked
/// or shared, and clocks of CPUs.
namespace isoscale::preflight {
namespace {

/// Finds a core of its own for as many ranks as possible, by augmenting paths of bipartite
/// matching.
class Seats {
 public:
  explicit Seats(std::vector<const CheckedRank*> ranks) : ranks_(std::move(ranks)) {}

  /// Returns the number of ranks that can have a core of their own at the same time.
  [[nodiscard]] std::size_t count() {
    std::size_t seated = 0;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      tried_.clear();
      if (seat(rank)) ++seated;
    }
    return seated;
  }

 private:
  bool seat(std::size_t rank) {
    const std::vector<int>& cores = ranks_[rank]->cores;
    // A free core is tried first, so that paths are long only if cores are few.
    for (const int core : cores) {
      if (taken_.try_emplace(core, rank).second) return true;
    }
    for (const int core : cores) {
      if (!tried_.insert(core).second || !seat(taken_[core])) continue;
      taken_[core] = rank;
      return true;
    }
    return false;
  }

  std::vector<const CheckedRank*> ranks_;
  std::map<int, std::size_t> taken_;  ///< rank that has the core
  std::set<int> tried_;
};

Results judge_shared_cores(const JobFacts& job) {
  Findings findings;
  for (const NodeRanks& node : nodes_of_ranks(job)) {
    std::vector<const CheckedRank*> bound;
    for (const CheckedRank* rank : node.ranks) {
      if (!rank->cores.empty()) bound.push_back(rank);
    }
    if (bound.empty()) {
      findings.miss();
      continue;
    }
    findings.know();
    const std::size_t seats = Seats{bound}.count();
    if (seats == bound.size()) continue;
    Finding finding{.what = fmt::format("only {} of {} can have a core of their own", seats,
                                        base::counted(bound.size(), "rank")),
                    .cost = "ranks take turns on cores and wait for each other: no scaling result",
                    .fix =
                        "bind each to cores of its own: srun --cpus-per-task, mpirun --map-by "
                        "slot:PE=N --bind-to core; start fewer ranks where cores are few"};
    if (job.device == "cuda") {
      findings.stop({.host = node.host()}, std::move(finding));
    } else {
      findings.warn({.host = node.host()}, std::move(finding));
    }
  }
  return std::move(findings).results({.fine = "every rank can have a core of its own",
                                      .unknown = "the cores of ranks are not known",
                                      .how = "mount /sys"});
}

std::size_t count_cores(const CheckedRank& rank) {
  return std::set<int>{rank.cores.begin(), rank.cores.end()}.size();
}

Results judge_single_core(const JobFacts& job) {
  Findings findings;
  const auto judge = [&](const CheckedRank& rank, const CheckedNode*) -> std::string {
    if (rank.cores.empty()) {
      findings.miss();
      return {};
    }
    findings.know();
    return count_cores(rank) == 1 ? "may run on one core alone" : "";
  };
  for_ranks(job, judge, [&](Place place, const std::string& text) {
    findings.warn(std::move(place),
                  {.what = text,
                   .cost = job.device == "cuda"
                               ? "the issuing thread and NCCL's proxy threads take turns on it"
                               : "streams are folded into one: communication hides behind nothing",
                   .fix = "give each rank two cores or more: srun --cpus-per-task, mpirun --map-by "
                          "slot:PE=N"});
  });
  return std::move(findings).results({.fine = "every rank may run on two cores or more",
                                      .unknown = "the cores of ranks are not known",
                                      .how = "mount /sys"});
}

/// Returns the number of NUMA nodes that the rank's CPUs are on; nullopt if unknown.
std::optional<std::size_t> numa_nodes_of(const CheckedRank& rank, const CheckedNode* node) {
  if (node == nullptr || node->numa_cpus.empty() || rank.cpus.empty()) return std::nullopt;
  const std::set<int> own{rank.cpus.begin(), rank.cpus.end()};
  return static_cast<std::size_t>(std::ranges::count_if(node->numa_cpus, [&](const auto& numa) {
    return std::ranges::any_of(numa.second, [&](int cpu) { return own.contains(cpu); });
  }));
}

Results judge_mask(const JobFacts& job) {
  Findings findings;
  const auto judge = [&](const CheckedRank& rank, const CheckedNode* node) -> std::string {
    const std::optional<std::size_t> count = numa_nodes_of(rank, node);
    if (!findings.knows(count) || *count < 2) return {};
    return fmt::format("may run on {}", base::counted(*count, "NUMA node"));
  };
  for_ranks(job, judge, [&](Place place, const std::string& text) {
    findings.warn(std::move(place),
                  {.what = text,
                   .cost = "threads move away from their memory and GPU; steps scatter",
                   .fix = "bind each rank inside a NUMA node: srun --cpu-bind=cores, mpirun "
                          "--map-by numa --bind-to numa"});
  });
  return std::move(findings).results({.fine = "every rank stays inside a NUMA node",
                                      .unknown = "NUMA nodes or CPUs of ranks are not known",
                                      .how = "mount /sys"});
}

Results judge_blas_threads(const JobFacts& job) {
  constexpr std::string_view cost = "BLAS threads take turns on cores";
  constexpr std::string_view fix = "lower --blas-threads, or give each rank more cores";
  Findings findings;
  if (job.device != "host") {
    return std::move(findings).results(
        {.fine = {}, .unknown = "the job does not compute with BLAS"});
  }
  for (const NodeRanks& node : nodes_of_ranks(job)) {
    if (node.facts == nullptr || !findings.knows(node.facts->cores)) continue;
    int threads = 0;
    for (const CheckedRank* rank : node.ranks) threads += rank->blas_threads;
    // With one thread for each rank, the check shared-cores warns instead.
    const bool is_one_each = threads <= static_cast<int>(node.ranks.size());
    if (threads <= *node.facts->cores || is_one_each) continue;
    findings.warn({.host = node.host()},
                  {.what = fmt::format("{} BLAS threads on {} cores", threads, *node.facts->cores),
                   .cost = std::string{cost},
                   .fix = std::string{fix}});
  }
  const auto judge = [&](const CheckedRank& rank, const CheckedNode*) -> std::string {
    if (rank.cores.empty()) return {};
    const auto threads = static_cast<std::size_t>(std::max(rank.blas_threads, 0));
    if (threads <= count_cores(rank)) return {};
    return fmt::format("{} BLAS threads on the {} it may run on", threads,
                       base::counted(count_cores(rank), "core"));
  };
  for_ranks(job, judge, [&](Place place, const std::string& text) {
    findings.warn(std::move(place),
                  {.what = text, .cost = std::string{cost}, .fix = std::string{fix}});
  });
  return std::move(findings).results({.fine = "no more BLAS threads than cores, or one a rank",
                                      .unknown = "the cores of nodes are not known",
                                      .how = "mount /sys"});
}

/// Warns if the CPU quota is below the number of threads that are always busy: on the host all BLAS
/// threads of all ranks, else one for each rank.
Results judge_quota(const JobFacts& job) {
  Findings findings;
  for (const NodeRanks& node : nodes_of_ranks(job)) {
    if (node.facts == nullptr) continue;
    if (!node.facts->cpu_quota) {
      // There is no quota, or it could not be read. It counts as known if other facts of the node
      // are.
      if (node.facts->cores) findings.know();
      continue;
    }
    findings.know();
    int busy = 0;
    for (const CheckedRank* rank : node.ranks) {
      busy += job.device == "host" ? std::max(rank->blas_threads, 1) : 1;
    }
    if (*node.facts->cpu_quota >= busy) continue;
    findings.warn({.host = node.host()},
                  {.what = fmt::format("a control group leaves {:g} CPUs to {} busy threads",
                                       *node.facts->cpu_quota, busy),
                   .cost = "the kernel stops the ranks in every period of 0.1 s",
                   .fix = "raise the container's or job's CPU limit (docker --cpus, Kubernetes "
                          "limits.cpu)"});
  }
  return std::move(findings).results({.fine = "no CPU limit below what ranks keep busy",
                                      .unknown = "control groups give no information",
                                      .how = "mount /sys/fs/cgroup"});
}

constexpr double mebibyte = 1024.0 * 1024;

std::string size_text(double value) {
  return units::format(units::Bytes{static_cast<std::uint64_t>(value)});
}

/// Checks the limit of locked memory. Adapters register the buffers that they send from, and the
/// kernel must not move registered memory.
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
    return fmt::format("locked memory is limited to {}", size_text(*rank.locked_memory_limit));
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

/// Returns the shared memory that NCCL needs. NVIDIA recommends 1 GiB in containers (NCCL
/// documentation, Troubleshooting, Runtime and MPI issues: --shm-size=1g), whose own default is 64
/// MiB. Fewer than 16 ranks need less: NCCL's segments have about 4 MiB each, and 64 MiB hold those
/// for 16 peers.
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
        {.what = fmt::format("/dev/shm has {} free, {} want {}", size_text(*node.facts->shm_free),
                             base::counted(node.ranks.size(), "rank"), size_text(need)),
         .cost = "NCCL and MPI fail, or talk inside the node by slower means",
         .fix = "docker --shm-size=1g or --ipc=host; remove files left behind in "
                "/dev/shm"});
  }
  return std::move(findings).results({.fine = "/dev/shm has room for what ranks share",
                                      .unknown = "/dev/shm gives no information",
                                      .how = "mount /dev/shm"});
}

/// Returns two numbers of CPUs: those that have one of the wanted settings, and all.
std::pair<int, int> count_cpus(const std::map<std::string, int>& settings,
                               std::initializer_list<std::string_view> wanted) {
  int found = 0, all = 0;
  for (const auto& [setting, cpus] : settings) {
    all += cpus;
    if (std::ranges::find(wanted, setting) != wanted.end()) found += cpus;
  }
  return {found, all};
}

/// Returns a sentence that says how many CPUs are set to save energy; "" if none is. In the active
/// modes of intel_pstate and amd-pstate-epp, the governor "powersave" is the dynamic default, and
/// the energy preference decides instead (Linux kernel documentation, CPU Performance Scaling).
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
    Check{"shared-cores", "whether every rank can have a core of its own", judge_shared_cores},
    Check{"single-core", "ranks that may run on one core alone", judge_single_core},
    Check{"numa-mask", "ranks that may run on several NUMA nodes", judge_mask},
    Check{"blas-threads", "BLAS threads against cores", judge_blas_threads},
    Check{"cpu-quota", "CPU limits of control groups against ranks", judge_quota},
    Check{"locked-memory", "the limit on locked memory on nodes with InfiniBand or RoCE",
          judge_locked_memory},
    Check{"shared-memory", "free space of /dev/shm against ranks of the node", judge_shared_memory},
    Check{"cpu-governor", "whether CPUs save power", judge_governor},
};

}  // namespace

std::span<const Check> node_checks() { return node_table; }

}  // namespace isoscale::preflight
