// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/preflight.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/build_info.hpp"
#include "base/log.hpp"
#include "preflight/check.hpp"
#include "preflight/collect.hpp"
#include "preflight/job_facts.hpp"
#include "runner/device.hpp"
#include "runner/on_root.hpp"
#include "runner/site.hpp"
#include "runner/sniff.hpp"

namespace isoscale::runner {
namespace {

using preflight::CheckedRank;
using preflight::CheckResult;
using preflight::JobFacts;

/// What the rank is made of.
std::map<std::string, std::string> versions_of(const executor::Executor* executor) {
  const base::BuildInfo& build = base::build_info();
  std::map<std::string, std::string> versions{{"isoscale", std::string{build.version}},
                                              {"git", std::string{build.git_hash}},
                                              {"build_type", std::string{build.build_type}},
                                              {"mpi", comm::Environment::library_version()}};
  if (executor == nullptr) return versions;
  const executor::Description& device = executor->describe();
  versions["device"] = device.detail;
  for (const char* const key : {"cuda_driver", "cuda_runtime", "cublas", "nccl"}) {
    const auto found = device.facts_text.find(key);
    if (found != device.facts_text.end()) versions[key] = found->second;
  }
  return versions;
}

/// This rank's part, and its node's if it is the first there.
JobFacts own_facts(const PreflightWish& wish, const comm::Communicator& world,
                   const std::vector<int>& node_of_rank) {
  const auto me = static_cast<std::size_t>(world.rank());
  const int node = node_of_rank[me];
  const auto before = std::span{node_of_rank}.first(me);
  const machine::MachineFacts& machine = wish.facts[me];
  const machine::NvmlLibrary nvml = machine::NvmlLibrary::open();
  const preflight::FactSources sources{.nvml = &nvml};

  CheckedRank rank = preflight::collect_rank(sources, machine);
  rank.rank = world.rank();
  rank.node = node;
  rank.local_rank = static_cast<int>(std::ranges::count(before, node));
  rank.blas_threads = wish.config.blas_threads;
  rank.versions = versions_of(wish.executor);
  if (wish.executor != nullptr) {
    const auto& text = wish.executor->describe().facts_text;
    if (const auto gpu = text.find("gpu_uuid"); gpu != text.end()) rank.gpu = gpu->second;
  }
  if (rank.gpu) rank.visible_gpus = preflight::collect_visible_gpus(sources);
  JobFacts facts;
  if (rank.local_rank == 0) {
    facts.nodes.push_back(preflight::collect_node(sources, machine));
    facts.nodes.back().node = node;
  } else if (rank.gpu) {
    // Control groups may hide it from the node's first rank.
    if (auto gpu = preflight::collect_gpu(sources, *rank.gpu)) {
      facts.nodes.emplace_back().node = node;
      facts.nodes.back().gpus = {*std::move(gpu)};
    }
  }
  facts.ranks.push_back(std::move(rank));
  return facts;
}

/// Why comparing what ranks do would say nothing; "" when it would.
std::string reason_not_to_sniff(const PreflightWish& wish, const std::vector<int>& node_of_rank) {
  constexpr std::size_t fewest = 4;  // fewer have no majority to differ from
  if (wish.executor == nullptr) return "no device was found to run on";
  if (wish.config.share_gpu == config::ShareGpu::yes) return "ranks share GPUs";
  if (node_of_rank.size() < fewest) {
    return fmt::format("{} ranks are too few to compare with each other", node_of_rank.size());
  }
  std::vector<int> everyone(node_of_rank.size());
  for (std::size_t rank = 0; rank < everyone.size(); ++rank)
    everyone[rank] = static_cast<int>(rank);
  if (wish.executor->describe().name == "host" && share_cores(everyone, wish.facts, node_of_rank)) {
    return "ranks share cores";
  }
  return {};
}

/// All parts together; on rank 0.
JobFacts join(const std::vector<std::string>& texts) {
  std::vector<JobFacts> parts;
  for (const std::string& text : texts) parts.push_back(preflight::job_facts_from_json(text));
  return preflight::merge(std::move(parts));
}

/// For the file: settings that are those of rank 0 are said once.
std::string recorded(JobFacts job) {
  for (std::size_t rank = 1; rank < job.ranks.size(); ++rank) {
    if (job.ranks[rank].environment == job.ranks.front().environment) {
      job.ranks[rank].environment.clear();
    }
  }
  return preflight::to_json(job);
}

}  // namespace

results::PreflightData preflight(const PreflightWish& wish, const comm::Communicator& world) {
  const std::vector<int> node_of_rank = comm::node_of_rank(world);
  JobFacts mine = own_facts(wish, world, node_of_rank);
  std::string no_sniff = reason_not_to_sniff(wish, node_of_rank);
  if (no_sniff.empty()) {
    Sniffed sniffed = sniff(*wish.executor, world, node_of_rank);
    mine.ranks.front().gemm_rate = sniffed.gemm_rate;
    mine.ranks.front().neighbours = std::move(sniffed.neighbours);
    no_sniff = sniffed.problem.value_or("");
  }
  const std::vector<std::string> parts = world.gather(preflight::to_json(mine));
  results::PreflightData data;
  on_root(world, [&] {
    JobFacts job = join(parts);
    job.device = wish.executor == nullptr ? std::string{config::name(wish.config.device)}
                                          : wish.executor->describe().name;
    job.share_gpu = wish.config.share_gpu == config::ShareGpu::yes;
    job.world = world.size();
    job.device_problem = wish.device_problem;
    job.device_reason = wish.device_reason;
    if (!no_sniff.empty()) job.sniff_skipped = no_sniff;
    data.results = preflight::check_job(job, wish.config.allowed);
    data.facts = recorded(std::move(job));
  });
  return data;
}

void require_no_stop(const results::PreflightData& preflight, const comm::Communicator& world) {
  on_root(world, [&] {
    std::string stops;
    for (const CheckResult& result : preflight.results) {
      const bool is_stop = result.verdict == preflight::Verdict::stop && !result.allowed;
      if (is_stop) {
        stops += fmt::format("\n  {}", preflight::to_sentence(result));
      } else if (result.verdict >= preflight::Verdict::warning) {
        base::warn(fmt::format("preflight: {}", preflight::to_sentence(result)));
      }
    }
    if (stops.empty()) return;
    throw base::UsageError(
        fmt::format("preflight stops the run before anything is measured:{}\nFix it, or let it "
                    "pass with --allow NAME; isoscale check shows all checks",
                    stops));
  });
}

results::PreflightData check(const config::RunConfig& config, const comm::Environment& environment,
                             const comm::Communicator& world) {
  const std::vector<machine::MachineFacts> facts = gather_facts(world);
  ChosenExecutor chosen;
  std::optional<std::string> problem;
  try {
    chosen = choose_executor(config, environment, world);
  } catch (const base::UsageError& error) {
    problem = error.what();
  }
  return preflight(
      {.config = config,
       .executor = chosen.executor.get(),
       .device_problem = problem,
       .device_reason = chosen.reason.empty() ? std::nullopt : std::optional{chosen.reason},
       .facts = facts},
      world);
}

}  // namespace isoscale::runner
