// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/text.hpp"
#include "preflight/job_view.hpp"
#include "preflight/rules.hpp"

/// These rules check how many processes were started on which nodes, and which devices they took.
namespace isoscale::preflight {
namespace {

/// Returns a clue that the job was meant for GPUs although the program chose the host; "" if there
/// is none.
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

Results judge_device(const JobFacts& job) {
  Findings findings;
  if (job.device.empty()) {
    findings.miss();
  } else {
    findings.know();
  }
  if (job.device_problem) {
    findings.stop({}, {.what = *job.device_problem,
                       .cost = "there is nothing to measure on",
                       .fix = "fix it, or measure another device with --device"});
  }
  if (const std::string sign = sign_of_gpus(job); !sign.empty()) {
    findings.warn(
        {}, {.what = fmt::format("runs on the host, although {}: {}", sign, *job.device_reason),
             .cost = "CPUs are measured, and no GPU",
             .fix = "fix what keeps GPUs from being used, or give --device host"});
  }
  std::string fine = job.device;
  if (!job.ranks.empty() && job.ranks.front().versions.contains("device")) {
    fine = job.ranks.front().versions.at("device");
  }
  if (job.device_reason)
    fine += "; " + (job.device == "host" ? "no GPU found" : *job.device_reason);
  return std::move(findings).results({.fine = std::move(fine),
                                      .unknown = "no device was chosen",
                                      .how = "name one with --device"});
}

/// Warns or stops if the launcher started more processes than MPI counts ranks. For a Slurm step,
/// the number of tasks of that step counts. The allocation's SLURM_NTASKS is used only if no other
/// variable gives a number.
Results judge_world_size(const JobFacts& job) {
  constexpr std::array<const char*, 4> steps{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                             "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"};
  Findings findings;
  const auto judge = [&](const CheckedRank& rank, const CheckedNode*) -> std::string {
    for (const char* const name : steps) {
      const auto told = rank.launcher.find(name);
      if (told == rank.launcher.end()) continue;
      findings.know();
      // A smaller number is no mistake: in a heterogeneous Slurm job, each part reports only its
      // own.
      if (told->second <= job.world) return {};
      return fmt::format("{} is {}, but MPI counts {}", name, told->second,
                         base::counted(job.world, "rank"));
    }
    findings.miss();
    return {};
  };
  for_ranks(job, judge, [&](Place place, const std::string& text) {
    Finding finding{.what = text,
                    .cost = "fewer ranks play than were asked for, or each measures itself alone",
                    .fix =
                        "start it with the mpirun of the MPI library that isoscale was built "
                        "with, or srun --mpi=pmix"};
    // SLURM_NTASKS is the number of the allocation; a smaller job within it may be intended.
    if (text.starts_with("SLURM_NTASKS")) {
      findings.warn(std::move(place), std::move(finding));
    } else {
      findings.stop(std::move(place), std::move(finding));
    }
  });
  return std::move(findings).results(
      {.fine = fmt::format("the launcher started as many processes as MPI counts: {}", job.world),
       .unknown = "no launcher says how many processes it started",
       .how = "start it with mpirun or srun"});
}

Results judge_ranks_per_node(const JobFacts& job) {
  Findings findings;
  std::vector<Observed> observed;
  for (const NodeRanks& node : nodes_of_ranks(job)) {
    observed.push_back(
        {.place = {.host = node.host()}, .value = base::counted(node.ranks.size(), "rank")});
  }
  find_differences(findings, observed,
                   {.quantity = "it has",
                    .cost = "nodes with more ranks share memory and network among more; groups "
                            "do not fit into nodes alike",
                    .fix = "ask for equal numbers: srun --ntasks-per-node, mpirun --map-by ppr"});
  return std::move(findings).results(
      {.fine = observed.empty() ? ""
                                : fmt::format("{} on each of {}", *observed.front().value,
                                              base::counted(observed.size(), "node")),
       .unknown = "no rank is known"});
}

/// Returns the number of GPUs on a node that NVML lists or that ranks took; nullopt if unknown.
/// GPUs that only sysfs shows are taken to belong to other jobs.
std::optional<std::size_t> visible_gpus(const NodeRanks& node) {
  if (node.facts == nullptr || !node.facts->gpus) return std::nullopt;
  std::set<std::string> taken;
  for (const CheckedRank* rank : node.ranks) {
    if (rank->gpu) taken.insert(*rank->gpu);
  }
  std::size_t visible = 0;
  for (const CheckedGpu& gpu : *node.facts->gpus) {
    if (gpu.mig == true) return std::nullopt;  // instances are not counted
    if (!gpu.uuid.empty()) ++visible;
  }
  // If no GPU is visible although the node has some, this is a container or NVML is missing, so the
  // number is unknown.
  if (visible == 0 && !(node.facts->gpus->empty() && taken.empty())) return std::nullopt;
  return std::max(visible, taken.size());
}

Results judge_gpus_per_node(const JobFacts& job) {
  Findings findings;
  for (const NodeRanks& node : nodes_of_ranks(job)) {
    if (job.device != "cuda" || job.device_problem) break;  // reported as the problem already
    const std::optional<std::size_t> gpus = visible_gpus(node);
    if (!findings.knows(gpus) || *gpus == node.ranks.size()) continue;
    std::string what = fmt::format("{} for {}", base::counted(*gpus, "GPU"),
                                   base::counted(node.ranks.size(), "rank"));
    if (*gpus > node.ranks.size()) {
      findings.warn({.host = node.host()},
                    {.what = std::move(what),
                     .cost = "idle GPUs leave network, memory and power to the others: the node "
                             "looks better than when it is full",
                     .fix = "start one rank per GPU"});
    } else if (!job.share_gpu) {
      findings.stop({.host = node.host()},
                    {.what = std::move(what),
                     .cost = "ranks take turns on a GPU, and NCCL refuses them",
                     .fix = "start one rank per GPU, or --share-gpu to test correctness alone"});
    }
  }
  return std::move(findings).results(
      {.fine = "as many GPUs as ranks on every node",
       .unknown = job.device_problem ? "the device cannot be had" : no_gpus(job, "NVML"),
       .how = "run with --device cuda where NVML answers"});
}

Results judge_duplicate_gpu(const JobFacts& job) {
  Findings findings;
  std::map<std::string, std::vector<const CheckedRank*>> users;
  for (const CheckedRank& rank : job.ranks) {
    if (job.device == "cuda" && findings.knows(rank.gpu)) users[*rank.gpu].push_back(&rank);
  }
  std::map<int, std::string> hosts;
  for (const CheckedNode& node : job.nodes) hosts[node.node] = node.host;
  for (const auto& [uuid, ranks] : users) {
    if (ranks.size() < 2 || job.share_gpu) continue;
    std::vector<std::string> numbers;
    for (const CheckedRank* rank : ranks) numbers.push_back(fmt::format("{}", rank->rank));
    findings.stop(
        {.host = hosts[ranks.front()->node], .device = uuid},
        {.what = fmt::format("ranks {} took the same GPU", listed(numbers)),
         .cost = "they take turns on it, and NCCL refuses them",
         .fix = "let every rank see the node's GPUs (srun --gpus-per-node=N --gpu-bind=none), "
                "so that each takes its own, or name them with --gpu-bind; --share-gpu "
                "to test correctness alone"});
  }
  return std::move(findings).results(
      {.fine = job.share_gpu ? "sharing GPUs is wanted" : "every rank has a GPU of its own",
       .unknown =
           job.device == "cuda" ? "no rank reports which GPU it took" : "the job runs on the host",
       .how = "run with --device cuda"});
}

/// Returns how many of the GPUs in `taken`, those of all ranks of its node, this rank may use.
/// nullopt if unknown: an instance of a partitioned GPU is not listed, even for the rank that took
/// it.
std::optional<std::size_t> reachable(const CheckedRank& rank, const std::set<std::string>& taken) {
  if (!rank.gpu || !rank.visible_gpus) return std::nullopt;
  const std::set<std::string> visible{rank.visible_gpus->begin(), rank.visible_gpus->end()};
  if (!visible.contains(*rank.gpu)) return std::nullopt;
  return static_cast<std::size_t>(std::ranges::count_if(
      taken, [&](const std::string& uuid) { return visible.contains(uuid); }));
}

/// Warns if a control group keeps a rank from using the GPUs of other ranks on its node.
/// CUDA_VISIBLE_DEVICES is no problem: NCCL can use GPUs that it hides.
Results judge_visibility(const JobFacts& job) {
  Findings findings;
  std::map<int, std::set<std::string>> taken;
  for (const CheckedRank& rank : job.ranks) {
    if (rank.gpu) taken[rank.node].insert(*rank.gpu);
  }
  const auto judge = [&](const CheckedRank& rank, const CheckedNode*) -> std::string {
    const std::set<std::string>& of_node = taken[rank.node];
    const std::optional<std::size_t> seen = reachable(rank, of_node);
    if (job.device != "cuda" || !findings.knows(seen) || *seen == of_node.size()) return {};
    return fmt::format("may use {} of the {} that ranks of its node took", *seen,
                       base::counted(of_node.size(), "GPU"));
  };
  for_ranks(job, judge, [&](Place place, const std::string& text) {
    findings.warn(std::move(place),
                  {.what = text,
                   .cost = "NCCL has no peer access (P2P) between processes that control groups "
                           "hide each other's GPU from: what they send passes host memory instead "
                           "of NVLink or PCIe",
                   .fix = "srun --gpus-per-node=N --gpu-bind=none instead of --gpus-per-task or "
                          "--gpu-bind=closest, with launch/bind.sh for the cores beside each GPU"});
  });
  return std::move(findings).results(
      {.fine = "every rank may use all GPUs that its node's ranks took",
       .unknown = job.device == "cuda" ? "no rank reports which GPUs it may use"
                                       : "the job runs on the host",
       .how = "run with --device cuda where NVML answers"});
}

Results judge_lost_gpu(const JobFacts& job) {
  Findings findings;
  for (const CheckedNode& node : job.nodes) {
    if (job.device != "cuda" || !findings.knows(node.gpus_lost) || *node.gpus_lost == 0) continue;
    findings.warn({.host = node.host},
                  {.what = fmt::format("{} of it cannot be reached any more",
                                       base::counted(*node.gpus_lost, "GPU")),
                   .cost = "the node has fewer GPUs than it was bought with; groups over it change",
                   .fix = "look for Xid 79 in the kernel's log; drain and restart the node"});
  }
  return std::move(findings).results({.fine = "every GPU that NVML counts answers",
                                      .unknown = no_gpus(job, "NVML"),
                                      .how = "run with --device cuda where NVML answers"});
}

constexpr std::array launch_table{
    Check{"device", "whether the device that the job plays on can be had", judge_device},
    Check{"world-size", "ranks that MPI counts against processes that the launcher started",
          judge_world_size},
    Check{"ranks-per-node", "whether all nodes have equally many ranks", judge_ranks_per_node},
    Check{"gpus-per-node", "GPUs of a node against its ranks", judge_gpus_per_node},
    Check{"duplicate-gpu", "whether two ranks took one GPU, by UUID", judge_duplicate_gpu},
    Check{"gpu-visibility", "whether ranks of a node may use each other's GPUs", judge_visibility},
    Check{"lost-gpu", "GPUs that NVML counts and cannot reach", judge_lost_gpu},
};

}  // namespace

std::span<const Check> launch_checks() { return launch_table; }

}  // namespace isoscale::preflight
