// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"
#include "system/preflight/job_view.hpp"
#include "system/preflight/rules.hpp"
#include "units/text.hpp"

/// How GPUs are set, and what they do now.
namespace isoscale::system {
namespace {

Results of_gpus(const JobFacts& job, Findings findings, std::string fine) {
  return std::move(findings).results({.fine = std::move(fine),
                                      .unknown = no_gpus(job, "NVML"),
                                      .how = "run with --device cuda where NVML answers"});
}

Results judge_mig(const JobFacts& job) {
  Findings findings;
  for (const JobGpu& one : job_gpus(job)) {
    if (!findings.knows(one.gpu->mig) || !*one.gpu->mig) continue;
    findings.warn(one.place(),
                  {.what = "MIG is on",
                   .cost = "ranks have a part of the GPU, and NVLink and peer access are off",
                   .fix = "nvidia-smi -mig 0, or ask for nodes without MIG"});
  }
  return of_gpus(job, std::move(findings), "off on all GPUs");
}

Results judge_compute_mode(const JobFacts& job) {
  Findings findings;
  for (const JobGpu& one : job_gpus(job)) {
    if (!findings.knows(one.gpu->compute_mode)) continue;
    const std::string& mode = *one.gpu->compute_mode;
    const bool is_shared = mode.starts_with("exclusive") && one.ranks.size() > 1;
    if (mode != "prohibited" && !is_shared) continue;
    const std::string ranks = base::counted(one.ranks.size(), "rank");
    findings.stop(one.place(),
                  {.what = is_shared ? fmt::format("compute mode '{}' with {}", mode, ranks)
                                     : "compute mode 'prohibited'",
                   .cost = "ranks cannot make a CUDA context on it",
                   .fix = "nvidia-smi -c DEFAULT"});
  }
  return of_gpus(job, std::move(findings), "lets every rank compute");
}

/// What limits clocks before there is any load. That they are set is application-clock's subject.
Results judge_throttle(const JobFacts& job) {
  constexpr std::array<std::string_view, 3> settings{"application clock settings",
                                                     "display clock settings", "sync boost"};
  Findings findings;
  for (const JobGpu& one : job_gpus(job)) {
    if (!findings.knows(one.gpu->throttle_reasons)) continue;
    for (const std::string& reason : *one.gpu->throttle_reasons) {
      if (std::ranges::find(settings, reason) != settings.end()) continue;
      findings.warn(one.place(),
                    {.what = fmt::format("clocks are held down now: {}", reason),
                     .cost = "the GPU computes slower than its like from the start",
                     .fix = "check its power supply and cooling: nvidia-smi -q -d PERFORMANCE"});
    }
  }
  return of_gpus(job, std::move(findings), "nothing holds clocks down now");
}

Results judge_persistence(const JobFacts& job) {
  Findings findings;
  for (const JobGpu& one : job_gpus(job)) {
    if (!findings.knows(one.gpu->persistence) || *one.gpu->persistence) continue;
    findings.warn(one.place(),
                  {.what = "persistence mode is off",
                   .cost = "little: the driver unloads between programs, so that start-up takes "
                           "longer and settings and error counts are lost",
                   .fix = "run nvidia-persistenced"});
  }
  return of_gpus(job, std::move(findings), "on, on all GPUs");
}

/// Processes on a GPU that are not of its node's ranks; nullopt where they cannot be told apart: in
/// a container ranks know themselves by other ids than the driver knows them by.
std::optional<std::string> foreign_processes(const JobGpu& one, const std::set<std::int64_t>& own) {
  const std::optional<std::vector<std::int64_t>>& processes = one.gpu->processes;
  if (!processes) return std::nullopt;
  std::vector<std::string> others;
  for (const std::int64_t pid : *processes) {
    if (!own.contains(pid)) others.push_back(fmt::format("{}", pid));
  }
  if (others.empty()) return "";
  if (others.size() == processes->size() && !one.ranks.empty()) {
    if (others.size() <= one.ranks.size()) return std::nullopt;
    return fmt::format("{} compute on it, but {} took it", base::counted(others.size(), "process"),
                       base::counted(one.ranks.size(), "rank"));
  }
  return fmt::format("others compute on it: process {}", listed(others));
}

/// The median that the job's GPUs have in use: libraries and buffers of a rank like any other.
double usual_use(std::span<const JobGpu> gpus) {
  std::vector<double> used;
  for (const JobGpu& one : gpus) {
    if (one.gpu->memory_used) used.push_back(*one.gpu->memory_used);
  }
  return used.empty() ? 0 : median(used);
}

Results judge_processes(const JobFacts& job) {
  constexpr double much = 1024.0 * 1024 * 1024;  // more than ranks of one program differ by
  Findings findings;
  std::map<int, std::set<std::int64_t>> own;
  for (const CheckedRank& rank : job.ranks) own[rank.node].insert(rank.pid);
  const std::vector<JobGpu> gpus = job_gpus(job);
  const double usual = usual_use(gpus);
  for (const JobGpu& one : gpus) {
    std::optional<std::string> what = foreign_processes(one, own[one.node->node]);
    if ((!what || what->empty()) && one.gpu->memory_used && *one.gpu->memory_used > usual + much) {
      const auto text = [](double bytes) {
        return units::format(units::Bytes{static_cast<std::uint64_t>(bytes)});
      };
      what = fmt::format("{} of its memory are in use, the median is {}",
                         text(*one.gpu->memory_used), text(usual));
    }
    if (!findings.knows(what) || what->empty()) continue;
    findings.warn(one.place(),
                  {.what = *what,
                   .cost = "they take turns with the rank's kernels, and take memory and links",
                   .fix = "end them, or ask for GPUs that are yours alone (srun --exclusive)"});
  }
  return of_gpus(job, std::move(findings), "no process but the job's ranks");
}

constexpr std::array gpu_state_table{
    Check{"mig", "whether GPUs are partitioned (MIG)", judge_mig},
    Check{"compute-mode", "whether ranks may compute on their GPU", judge_compute_mode},
    Check{"throttle", "what holds clocks down before there is any load", judge_throttle},
    Check{"persistence", "whether the driver stays loaded between programs", judge_persistence},
    Check{"other-processes", "processes on GPUs that are not of the job", judge_processes},
};

}  // namespace

std::span<const Check> gpu_state_checks() { return gpu_state_table; }

}  // namespace isoscale::system
