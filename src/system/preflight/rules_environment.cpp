// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"
#include "system/preflight/rules.hpp"
#include "system/preflight/settings.hpp"

/// Variables beside those of NCCL.
namespace isoscale::system {
namespace {

/// CUDA C++ Programming Guide, CUDA Environment Variables.
Results judge_cuda(const JobFacts& job) {
  Findings findings;
  if (job.device != "cuda") {
    return std::move(findings).results({.fine = {}, .unknown = "the job runs on the host"});
  }
  find_bad_settings(
      findings, job,
      {{.variable = "CUDA_LAUNCH_BLOCKING",
        .hurts = [](const CheckedRank& rank,
                    const CheckedNode*) { return is_switched_on(rank, "CUDA_LAUNCH_BLOCKING"); },
        .cost = "every kernel is waited for: nothing overlaps, gaps everywhere",
        .fix = "unset it"}});
  const std::string set = settings_of_first(
      job, {"CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_DEVICE_ORDER", "CUDA_MODULE_LOADING"});
  return std::move(findings).results(
      {.fine = set.empty() ? "nothing that orders kernels is set" : fmt::format("set: {}", set),
       .unknown = "no rank is known"});
}

/// Whether UCX is left a transport of InfiniBand: "all", "ib", or one that begins with rc, ud or dc
/// ("rc_x", "dc_mlx5"); "^" leaves the named ones out. UCX documentation, UCX_TLS.
bool leaves_infiniband(std::string_view list) {
  const bool is_exclusion = list.starts_with('^');
  if (is_exclusion) list.remove_prefix(1);
  const std::vector<std::string> parts = parts_of_list(list);
  const auto has = [&](std::string_view name) {
    return std::ranges::find(parts, name) != parts.end();
  };
  if (is_exclusion) return !has("ib") && !(has("rc") && has("ud") && has("dc"));
  return has("all") || has("ib") || std::ranges::any_of(parts, [](const std::string& part) {
           return part.starts_with("rc") || part.starts_with("ud") || part.starts_with("dc");
         });
}

Results judge_ucx(const JobFacts& job) {
  Findings findings;
  const bool several = has_several_nodes(job);
  find_bad_settings(findings, job,
                    {{.variable = "UCX_TLS",
                      .hurts =
                          [&](const CheckedRank& rank, const CheckedNode* node) {
                            return several && node != nullptr && has_up_port(*node) &&
                                   !leaves_infiniband(*setting(rank, "UCX_TLS"));
                          },
                      .cost = "MPI between nodes goes through TCP although there is InfiniBand or "
                              "RoCE",
                      .fix = "add rc or dc to it, or unset it"}});
  return std::move(findings).results(
      {.fine = "UCX may use what the nodes have", .unknown = "no rank is known"});
}

Results judge_threads(const JobFacts& job) {
  Findings findings;
  if (job.device != "host") {
    return std::move(findings).results(
        {.fine = {}, .unknown = "the job does not compute with BLAS"});
  }
  find_bad_settings(findings, job,
                    {{.variable = "OMP_NUM_THREADS",
                      .hurts =
                          [](const CheckedRank& rank, const CheckedNode*) {
                            return setting(rank, "OMP_NUM_THREADS") !=
                                   fmt::format("{}", rank.blas_threads);
                          },
                      .cost = "none if only this program reads it: BLAS has the number of threads "
                              "that --blas-threads says",
                      .fix = "set both to the same number, or unset it"}});
  return std::move(findings).results({.fine = "OMP_NUM_THREADS says nothing else than "
                                              "--blas-threads",
                                      .unknown = "no rank is known"});
}

/// Those that launchers and scripts set for each rank by itself.
bool is_of_one_rank(const std::string& variable) {
  constexpr std::array<std::string_view, 6> names{
      "CUDA_VISIBLE_DEVICES", "UCX_NET_DEVICES",         "OMP_PLACES",
      "GOMP_CPU_AFFINITY",    "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"};
  return std::ranges::find(names, variable) != names.end();
}

/// What of a value is to be alike: of a list of adapters the number, since each rank may be given
/// those beside its GPU.
std::string alike_part(const CheckedRank& rank, const std::string& variable) {
  const std::optional<std::string> value = setting(rank, variable);
  if (!value) return fmt::format("{} is not set", variable);
  if (variable == "NCCL_IB_HCA") {
    return fmt::format("{} {} {}", variable, value->starts_with('^') ? "leaves out" : "names",
                       base::counted(parts_of_list(*value).size(), "adapter"));
  }
  return fmt::format("{}={}", variable, base::printable(*value));
}

Results judge_equal(const JobFacts& job) {
  Findings findings;
  std::set<std::string> variables;
  for (const CheckedRank& rank : job.ranks) {
    findings.know();
    for (const auto& [variable, value] : rank.environment) {
      if (!is_of_one_rank(variable)) variables.insert(variable);
    }
  }
  for (const std::string& variable : variables) {
    std::vector<std::string> values;
    for (const CheckedRank& rank : job.ranks) values.push_back(alike_part(rank, variable));
    const std::string usual = *most_common(std::span<const std::string>{values});
    const auto judge = [&](const CheckedRank& rank, const CheckedNode*) -> std::string {
      const std::string text = alike_part(rank, variable);
      return text == usual ? "" : fmt::format("{}, elsewhere {}", text, usual);
    };
    for_ranks(job, judge, [&](Place place, const std::string& text) {
      findings.warn(std::move(place),
                    {.what = text,
                     .cost = "libraries that choose differently hang, or differ in speed",
                     .fix = "hand variables to all nodes: mpirun -x NAME, srun --export=ALL"});
    });
  }
  return std::move(findings).results(
      {.fine = "recorded variables are alike on all ranks", .unknown = "no rank is known"});
}

constexpr std::array environment_table{
    Check{"cuda-settings", "variables that order the work of CUDA", judge_cuda},
    Check{"ucx-transports", "whether UCX may use InfiniBand where there is some", judge_ucx},
    Check{"thread-settings", "OMP_NUM_THREADS against --blas-threads", judge_threads},
    Check{"equal-settings", "whether recorded variables are alike on all ranks", judge_equal},
};

}  // namespace

std::span<const Check> environment_checks() { return environment_table; }

}  // namespace isoscale::system
