// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "machine/facts.hpp"
#include "preflight/rules.hpp"

/// These rules check the resources of nodes: the cores that ranks may run on, the memory that may
/// be locked or shared, and the clocks of CPUs.
namespace isoscale::preflight {
namespace {

using enum Verdict;

/// Makes a rule from a function that judges one node. Nodes without ranks are left out.
template <auto judge>
void each_node_of_ranks(Findings& findings, const JobFacts& job) {
  for (const NodeRanks& node : nodes_of_ranks(job)) {
    findings.add({.host = node.host()}, judge(node, job));
  }
}

Answer judge_shared_cores(const NodeRanks& node, const JobFacts& job) {
  std::vector<std::vector<int>> bound;
  for (const CheckedRank* rank : node.ranks) {
    if (!rank->cores.empty()) bound.push_back(rank->cores);
  }
  if (bound.empty()) return not_known;
  const std::size_t with_core = machine::count_with_own_core(bound);
  if (with_core == bound.size()) return nothing_wrong;
  return {.wrong = fmt::format("only {} of {} can have their own core", with_core,
                               base::counted(bound.size(), "rank")),
          .verdict = job.device == "cuda" ? stop : warning};
}

std::size_t count_cores(const CheckedRank& rank) {
  return std::set<int>{rank.cores.begin(), rank.cores.end()}.size();
}

Answer judge_single_core(const CheckedRank& rank, const NodeRanks&, const JobFacts& job) {
  if (rank.cores.empty()) return not_known;
  if (count_cores(rank) > 1) return nothing_wrong;
  return {.wrong = "may run on only one core",
          .cost = job.device == "cuda"
                      ? "NCCL's proxy threads and the thread that issues work share this core"
                      : "streams run as one, so communication overlaps with nothing"};
}

/// Returns the number of NUMA nodes with CPUs that the rank may run on; nullopt if unknown.
std::optional<std::size_t> numa_nodes_of(const CheckedRank& rank, const CheckedNode* node) {
  if (node == nullptr || node->numa_cpus.empty() || rank.cpus.empty()) return std::nullopt;
  const std::set<int> own{rank.cpus.begin(), rank.cpus.end()};
  return static_cast<std::size_t>(std::ranges::count_if(node->numa_cpus, [&](const auto& numa) {
    return std::ranges::any_of(numa.second, [&](int cpu) { return own.contains(cpu); });
  }));
}

Answer judge_mask(const CheckedRank& rank, const NodeRanks& node, const JobFacts&) {
  const std::optional<std::size_t> count = numa_nodes_of(rank, node.facts);
  if (!count) return not_known;
  if (*count < 2) return nothing_wrong;
  return wrong("may run on {}", base::counted(*count, "NUMA node"));
}

void judge_blas_threads(Findings& findings, const JobFacts& job) {
  for (const NodeRanks& node : nodes_of_ranks(job)) {
    if (node.facts == nullptr || !findings.knows(node.facts->cores)) continue;
    int threads = 0;
    for (const CheckedRank* rank : node.ranks) threads += rank->blas_threads;
    // If each rank has only one BLAS thread, the check shared-cores warns of too few cores.
    const bool is_one_each = threads <= static_cast<int>(node.ranks.size());
    if (threads <= *node.facts->cores || is_one_each) continue;
    findings.add({.host = node.host()},
                 wrong("{} BLAS threads on {} cores", threads, *node.facts->cores));
  }
  judge_ranks(findings, job, [](const CheckedRank& rank, const NodeRanks&) -> Answer {
    const auto threads = static_cast<std::size_t>(std::max(rank.blas_threads, 0));
    if (rank.cores.empty() || threads <= count_cores(rank)) return not_concerned;
    return wrong("has {} BLAS threads, but may run on only {}", threads,
                 base::counted(count_cores(rank), "core"));
  });
}

/// Warns if a control group's CPU quota is below the number of threads that are always busy: if the
/// job runs on the host, the BLAS threads of all ranks, else one thread of each rank.
Answer judge_quota(const NodeRanks& node, const JobFacts& job) {
  if (node.facts == nullptr) return not_concerned;
  // The quota is absent both if there is none and if it could not be read. If other facts of the
  // node could be read, there is none.
  if (!node.facts->cpu_quota) return node.facts->cores ? nothing_wrong : not_concerned;
  int busy = 0;
  for (const CheckedRank* rank : node.ranks) {
    busy += job.device == "host" ? std::max(rank->blas_threads, 1) : 1;
  }
  if (*node.facts->cpu_quota >= busy) return nothing_wrong;
  return wrong("the CPU limit is {:g} CPUs for {} busy threads", *node.facts->cpu_quota, busy);
}

/// Warns if the memory that a rank may lock is limited on a node with an InfiniBand or RoCE port
/// that is up. Adapters register the buffers that they send from, which locks them in memory.
Answer judge_locked_memory(const CheckedRank& rank, const NodeRanks& node, const JobFacts&) {
  if (!node.has_network()) return not_concerned;
  if (rank.locked_memory_unlimited) return nothing_wrong;
  if (!rank.locked_memory_limit) return not_known;
  return wrong("locked memory is limited to {}", bytes_text(*rank.locked_memory_limit));
}

/// Returns the bytes of shared memory that NCCL needs for `ranks` ranks on a node: 64 MiB for each
/// rank, but at most 1 GiB. NVIDIA recommends 1 GiB in containers, whose own default is 64 MiB
/// (NCCL documentation, Troubleshooting, Runtime and MPI issues: --shm-size=1g). NCCL's shared
/// segments have about 4 MiB each, so 64 MiB are enough for 16 peers of a rank.
double shared_memory_need(std::size_t ranks) {
  constexpr double each = 64 * 1024.0 * 1024, most = 1024 * 1024.0 * 1024;
  return std::min(most, each * static_cast<double>(ranks));
}

Answer judge_shared_memory(const NodeRanks& node, const JobFacts&) {
  if (node.facts == nullptr) return not_concerned;
  if (!node.facts->shm_free) return not_known;
  const double need = shared_memory_need(node.ranks.size());
  if (*node.facts->shm_free >= need) return nothing_wrong;
  return wrong("/dev/shm has {} free, but {} need {}", bytes_text(*node.facts->shm_free),
               base::counted(node.ranks.size(), "rank"), bytes_text(need));
}

/// Returns how many CPUs have one of the wanted settings, and how many CPUs there are.
std::pair<int, int> count_cpus(const std::map<std::string, int>& settings,
                               std::initializer_list<std::string_view> wanted) {
  int found = 0, all = 0;
  for (const auto& [setting, cpus] : settings) {
    all += cpus;
    if (std::ranges::find(wanted, setting) != wanted.end()) found += cpus;
  }
  return {found, all};
}

/// Warns of CPUs that are set to save energy. In general the frequency governor decides. In the
/// active modes of intel_pstate and amd-pstate-epp, the governor "powersave" is the usual dynamic
/// one, and the energy preference decides instead (Linux kernel documentation, CPU Performance
/// Scaling).
Answer judge_governor(const CheckedNode& node) {
  if (!node.governors) return not_known;
  const bool is_active =
      node.frequency_driver == "intel_pstate" || node.frequency_driver == "amd-pstate-epp";
  if (!is_active) {
    const auto [saving, all] = count_cpus(*node.governors, {"powersave"});
    if (saving == 0) return nothing_wrong;
    return wrong("{} of {} CPUs have the frequency governor powersave", saving, all);
  }
  if (!node.energy_preferences) return nothing_wrong;
  const auto [saving, all] = count_cpus(*node.energy_preferences, {"power", "balance_power"});
  if (saving == 0) return nothing_wrong;
  return wrong("{} of {} CPUs prefer to save energy (energy_performance_preference)", saving, all);
}

constexpr auto node_table = std::to_array<Rule>(
    {{"shared-cores", each_node_of_ranks<judge_shared_cores>, warning,
      "ranks share cores and wait for each other, so the results show no scaling",
      "bind each rank to its own cores (srun --cpus-per-task, mpirun --map-by slot:PE=N --bind-to "
      "core), or start fewer ranks",
      "every rank can have its own core", "the cores of ranks are not known", "mount /sys"},
     {"single-core", each_rank<judge_single_core>, warning, "",
      "give each rank two cores or more: srun --cpus-per-task, mpirun --map-by slot:PE=N",
      "every rank may run on two cores or more", "the cores of ranks are not known", "mount /sys"},
     {"numa-mask", each_rank<judge_mask>, warning,
      "threads may move away from their memory and GPU, so step times vary",
      "bind each rank inside a NUMA node: srun --cpu-bind=cores, mpirun --map-by numa --bind-to "
      "numa",
      "every rank stays inside a NUMA node", "NUMA nodes or CPUs of ranks are not known",
      "mount /sys"},
     {"blas-threads", judge_blas_threads, warning, "BLAS threads share cores",
      "lower --blas-threads, or give each rank more cores",
      "no more BLAS threads than cores, or one per rank", "the cores of nodes are not known",
      "mount /sys", with_blas},
     {"cpu-quota", each_node_of_ranks<judge_quota>, warning,
      "the kernel pauses the ranks in every period of 0.1 s",
      "raise the container's or job's CPU limit (docker --cpus, Kubernetes limits.cpu)",
      "no CPU limit is below the number of busy threads", "control groups give no information",
      "mount /sys/fs/cgroup"},
     {"locked-memory", each_rank<judge_locked_memory>, warning,
      "buffers cannot be registered with the adapter: connections fail, or fall back to TCP",
      "ulimit -l unlimited (limits.conf; LimitMEMLOCK=infinity for slurmd; docker --ulimit "
      "memlock=-1)",
      "no limit on locked memory on nodes with InfiniBand or RoCE",
      "no node has an InfiniBand or RoCE port that is known to be up"},
     {"shared-memory", each_node_of_ranks<judge_shared_memory>, warning,
      "NCCL and MPI fail, or communicate more slowly inside the node",
      "docker --shm-size=1g or --ipc=host; remove files left behind in /dev/shm",
      "/dev/shm has enough space for the ranks", "/dev/shm gives no information", "mount /dev/shm"},
     {"cpu-governor", each_node<judge_governor>, warning,
      "clocks may stay low or rise late, so launches and small messages take longer",
      "cpupower frequency-set -g performance", "no CPU is set to save power",
      "the kernel reports no governor, which is usual in virtual machines"}});

}  // namespace

std::span<const Rule> node_rules() { return node_table; }

}  // namespace isoscale::preflight
