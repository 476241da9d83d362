// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <map>
#include <set>

#include "base/text.hpp"
#include "preflight/rules.hpp"

/// These rules check how many processes the launcher started on which nodes, and which GPUs they
/// use.
namespace isoscale::preflight {
namespace {

using enum Verdict;

/// Returns a clue that the user wanted GPUs although --device auto chose the host; "" if there is
/// none.
std::string sign_of_gpus(const JobFacts& job) {
  if (job.device != "host" || !job.device_reason) return {};
  for (const CheckedNode& node : job.nodes) {
    if (node.gpus && !node.gpus->empty()) {
      return fmt::format("{} has {}", node.host, base::counted(node.gpus->size(), "NVIDIA GPU"));
    }
  }
  for (const CheckedRank& rank : job.ranks) {
    const auto allocated = rank.launcher.find("SLURM_GPUS_ON_NODE");
    if (allocated != rank.launcher.end() && allocated->second > 0) {
      return fmt::format("SLURM_GPUS_ON_NODE is {}", allocated->second);
    }
    const std::string visible = setting(rank, "CUDA_VISIBLE_DEVICES").value_or("");
    const bool names_none = visible.empty() || visible == "-1" || visible == "NoDevFiles";
    if (!names_none) return fmt::format("CUDA_VISIBLE_DEVICES is {}", base::printable(visible));
  }
  return {};
}

void judge_device(Findings& findings, const JobFacts& job) {
  findings.add(job.device.empty() ? not_known : nothing_wrong);
  if (job.device_problem) {
    findings.add({.wrong = *job.device_problem,
                  .cost = "the job has no device to measure on",
                  .fix = "solve this problem, or choose another device with --device",
                  .verdict = stop});
  }
  if (const std::string sign = sign_of_gpus(job); !sign.empty()) {
    findings.add(wrong("the job runs on the host although {}: {}", sign, *job.device_reason));
  }
  std::string& fine = findings.otherwise.fine;
  fine =
      job.ranks.empty() ? job.device : version_of(job.ranks.front(), "device").value_or(job.device);
  if (job.device_reason) {
    fine += "; " + (job.device == "host" ? "no GPU found" : *job.device_reason);
  }
}

/// Warns or stops if the launcher started more processes than MPI has ranks, since some processes
/// are then not in MPI_COMM_WORLD. In a Slurm step the number of tasks is the number of processes.
/// SLURM_NTASKS, which counts the tasks of the whole allocation, is used only if no other variable
/// gives a number. It causes only a warning, since a job may use only part of its allocation.
void judge_world_size(Findings& findings, const JobFacts& job) {
  constexpr std::array<std::string_view, 4> names{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                                  "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"};
  findings.otherwise.fine =
      fmt::format("the launcher and MPI count the same number of ranks: {}", job.world);
  judge_ranks(findings, job, [&](const CheckedRank& rank, const NodeRanks&) -> Answer {
    for (const std::string_view name : names) {
      const auto started = rank.launcher.find(std::string{name});
      if (started == rank.launcher.end()) continue;
      // A number below MPI's is no mistake: in a heterogeneous Slurm job, each component reports
      // only its own processes.
      if (started->second <= job.world) return nothing_wrong;
      return {.wrong = fmt::format("{} is {}, but MPI counts {}", name, started->second,
                                   base::counted(job.world, "rank")),
              .verdict = name == "SLURM_NTASKS" ? warning : stop};
    }
    return not_known;
  });
}

void judge_ranks_per_node(Findings& findings, const JobFacts& job) {
  std::vector<Observed> observed;
  for (const NodeRanks& node : nodes_of_ranks(job)) {
    observed.push_back(
        {.place = {.host = node.host()}, .value = base::counted(node.ranks.size(), "rank")});
  }
  findings.otherwise.fine =
      fmt::format("{} on each of {}", find_differences(findings, observed, "it has"),
                  base::counted(observed.size(), "node"));
}

/// Returns the UUIDs of the GPUs that the ranks of a node use.
std::set<std::string> gpus_taken(const NodeRanks& node) {
  std::set<std::string> taken;
  for (const CheckedRank* rank : node.ranks) {
    if (rank->gpu) taken.insert(*rank->gpu);
  }
  return taken;
}

/// Returns the number of GPUs that NVML lists on a node, or the number of GPUs that its ranks use
/// if this is larger; nullopt if unknown. GPUs that only sysfs shows are assumed to belong to other
/// jobs.
std::optional<std::size_t> visible_gpus(const NodeRanks& node) {
  if (node.facts == nullptr || !node.facts->gpus) return std::nullopt;
  const std::set<std::string> taken = gpus_taken(node);
  std::size_t visible = 0;
  for (const GpuFacts& gpu : *node.facts->gpus) {
    if (gpu.mig == true) return std::nullopt;  // ranks use MIG instances, which are not listed
    if (!gpu.uuid.empty()) ++visible;
  }
  // The node has GPUs, but NVML lists none: this is a container, or NVML is missing. So the number
  // of GPUs is unknown.
  if (visible == 0 && !(node.facts->gpus->empty() && taken.empty())) return std::nullopt;
  return std::max(visible, taken.size());
}

void judge_gpus_per_node(Findings& findings, const JobFacts& job) {
  findings.otherwise.unknown = job.device_problem ? "the device is not available" : no_gpus(job);
  for (const NodeRanks& node : nodes_of_ranks(job)) {
    // A device that cannot be used is reported by the check "device".
    if (job.device != "cuda" || job.device_problem) break;
    const std::optional<std::size_t> gpus = visible_gpus(node);
    if (!findings.knows(gpus) || *gpus == node.ranks.size()) continue;
    Answer answer =
        wrong("{} for {}", base::counted(*gpus, "GPU"), base::counted(node.ranks.size(), "rank"));
    if (*gpus < node.ranks.size()) {
      if (job.share_gpu) continue;
      answer.cost = "ranks share GPUs and slow each other down, and NCCL refuses to run";
      answer.fix = "start one rank per GPU; to test only correctness, give --share-gpu";
      answer.verdict = stop;
    }
    findings.add({.host = node.host()}, answer);
  }
}

void judge_duplicate_gpu(Findings& findings, const JobFacts& job) {
  if (job.share_gpu) findings.otherwise.fine = "ranks may share GPUs (--share-gpu)";
  for (const NodeRanks& node : nodes_of_ranks(job)) {
    std::map<std::string, std::vector<std::string>> users;
    for (const CheckedRank* rank : node.ranks) {
      if (findings.knows(rank->gpu)) users[*rank->gpu].push_back(fmt::format("{}", rank->rank));
    }
    for (const auto& [uuid, numbers] : users) {
      if (numbers.size() < 2 || job.share_gpu) continue;
      findings.add({.host = node.host(), .device = uuid},
                   wrong("ranks {} use the same GPU", listed(numbers)));
    }
  }
}

/// Warns if a control group keeps a rank from using the GPUs of other ranks on its node. GPUs that
/// are only hidden by CUDA_VISIBLE_DEVICES are no problem, since NCCL can use them.
void judge_visibility(Findings& findings, const JobFacts& job) {
  std::map<int, std::set<std::string>> taken_on;  // by node
  for (const NodeRanks& node : nodes_of_ranks(job)) taken_on[node.node] = gpus_taken(node);
  judge_ranks(findings, job, [&](const CheckedRank& rank, const NodeRanks& node) -> Answer {
    if (!rank.gpu || !rank.visible_gpus) return not_known;
    const std::set<std::string> visible{rank.visible_gpus->begin(), rank.visible_gpus->end()};
    if (!visible.contains(*rank.gpu)) {
      return not_known;  // it uses a MIG instance, which is not listed
    }
    const std::set<std::string>& taken = taken_on.at(node.node);
    const auto reached = static_cast<std::size_t>(std::ranges::count_if(
        taken, [&](const std::string& uuid) { return visible.contains(uuid); }));
    if (reached == taken.size()) return nothing_wrong;
    return wrong("may use {} of the {} that ranks of its node use", reached,
                 base::counted(taken.size(), "GPU"));
  });
}

Answer judge_lost_gpu(const CheckedNode& node) {
  if (!node.gpus_lost) return not_known;
  if (*node.gpus_lost == 0) return nothing_wrong;
  return wrong("{} cannot be reached any more", base::counted(*node.gpus_lost, "GPU"));
}

constexpr auto launch_table = std::to_array<Rule>(
    {{"device", judge_device, warning, "the run measures CPUs instead of GPUs",
      "fix what keeps the job from using GPUs, or give --device host", "", "no device was chosen",
      "choose one with --device"},
     {"world-size", judge_world_size, stop,
      "fewer ranks run than you asked for, or each process runs as a job of one rank",
      "use the mpirun of the MPI library that isoscale was built with, or srun --mpi=pmix", "",
      "no launcher reports how many processes it started", "start the job with mpirun or srun"},
     {"ranks-per-node", judge_ranks_per_node, warning,
      "on nodes with more ranks, each rank gets a smaller share of memory and network, and groups "
      "of ranks do not fit all nodes equally",
      "ask for equal numbers: srun --ntasks-per-node, mpirun --map-by ppr", "", "no rank is known"},
     {"gpus-per-node", judge_gpus_per_node, warning,
      "idle GPUs leave more network, memory and power to the others, so results look better than "
      "on a full node",
      "start one rank per GPU", "every node has as many GPUs as ranks", "", how_on_gpus},
     {"duplicate-gpu", judge_duplicate_gpu, stop,
      "the ranks slow each other down, and NCCL refuses to run",
      "let every rank see all GPUs of its node (srun --gpus-per-node=N --gpu-bind=none), or assign "
      "GPUs with isoscale's --gpu-bind; to test only correctness, give --share-gpu",
      "every rank has its own GPU", "no rank reports which GPU it uses", "run with --device cuda",
      on_gpus},
     {"gpu-visibility", judge_visibility, warning,
      "control groups hide the GPUs of these ranks from each other, so NCCL has no peer access "
      "(P2P): data goes through host memory instead of NVLink or PCIe",
      "use srun --gpus-per-node=N --gpu-bind=none instead of --gpus-per-task or "
      "--gpu-bind=closest, and bind ranks to cores near their GPUs with launch/bind.sh",
      "every rank may use all GPUs that ranks of its node use",
      "no rank reports which GPUs it may use", how_on_gpus, on_gpus},
     {"lost-gpu", each_node<judge_lost_gpu>, warning,
      "the node has fewer usable GPUs than it should, which also changes the groups of ranks on it",
      "look for Xid 79 in the kernel's log; drain and restart the node",
      "every GPU that NVML counts responds", "NVML gives no information on the GPUs", how_on_gpus,
      on_gpus}});

}  // namespace

std::span<const Rule> launch_rules() { return launch_table; }

}  // namespace isoscale::preflight
