// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/preflight_and_executor_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <ranges>
#include <utility>
#include <vector>

#include "base/build_info.hpp"
#include "base/error.hpp"
#include "base/warn.hpp"
#include "executor/host/host_executor.hpp"
#include "executor/plugin.hpp"
#include "preflight/collect_facts.hpp"
#include "preflight/job_facts.hpp"
#include "results/reader/reader.hpp"
#include "results/records/launch_compatibility.hpp"
#include "results/records/point_facts.hpp"
#include "runner/microbench/rank_and_pair_speeds.hpp"
#include "runner/plan/launch_site.hpp"

namespace isoscale::runner {
namespace {

using preflight::CheckedRank;
using preflight::JobFacts;
using results::CheckResult;

std::unique_ptr<executor::Executor> make_host(const settings::RunConfig& config,
                                              const comm::Communicator& world) {
  // Without this error, the executor would silently play all streams on one thread, although the
  // user asked for one thread per stream.
  const bool threads_may_talk = comm::threads_may_talk();
  if (config.host_streams == settings::HostStreams::threads && !threads_may_talk) {
    throw base::UsageError(
        "--host-streams threads: this MPI does not let several threads communicate; leave it out, "
        "or use a build of MPI that gives MPI_THREAD_MULTIPLE");
  }
  return executor::make_host_executor({.blas_threads = config.blas_threads,
                                       .streams = config.host_streams,
                                       .ranks_on_node = world.split_node().size(),
                                       .threads_may_talk = threads_may_talk});
}

/// Collective: returns the GEMM algorithms that an earlier run chose, from the file that the user
/// names with --gemm-algorithms; none without this option. Every rank reads the file; if one of
/// them cannot, all throw base::UsageError.
std::vector<results::GemmChoice> known_algorithms(const settings::RunConfig& config,
                                                  const comm::Communicator& world) {
  std::vector<results::GemmChoice> known;
  if (config.gemm_algorithms.empty()) return known;
  const std::string problem = comm::problem_in([&] {
    const std::string file = config.gemm_algorithms.string();
    const auto run = results::read_run(config.gemm_algorithms);
    known = results::choices_of_run(run, file);
  });
  if (const comm::Vote vote = comm::all_ok(world, problem); !vote.ok) {
    throw base::UsageError(vote.why);
  }
  return known;
}

std::unique_ptr<executor::Executor> make_cuda(const settings::RunConfig& config,
                                              const executor::PluginTable& plugin,
                                              const comm::Communicator& world) {
  executor::CudaOptions options{.gpu_bind = config.gpu_bind,
                                .share = config.share_gpu,
                                .graph = config.graph,
                                .nvtx = config.nvtx,
                                .known_algorithms = known_algorithms(config, world)};
  // The GPU writes a mark into memory when an op starts, so that a hang can be located. Without a
  // timeout no hang is detected, so no marks are needed.
  if (config.timeout <= units::Seconds{}) options.mark_cost.reset();
  // The executor stops waiting for a communicator a little before the supervisor would report a
  // hang, since the executor can name the communicator.
  constexpr double before_hang = 0.9;
  options.communicator_timeout = before_hang * config.timeout;
  return plugin.make(options, world);
}

/// Collective: returns the CUDA plugin, and the vote of all ranks on whether each can use it.
std::pair<executor::PluginSearch, comm::Vote> look_for_gpus(const comm::Communicator& world) {
  executor::PluginSearch search = executor::open_cuda_plugin();
  const std::string problem = search.table != nullptr ? search.table->problem() : search.problem;
  return {std::move(search), comm::all_ok(world, problem)};
}

/// Returns the versions of the software that this rank uses: "mpi" with the version of the MPI
/// library, and so on. `executor` may be null.
std::map<std::string, std::string> versions_of(const executor::Executor* executor) {
  const base::BuildInfo& build = base::build_info();
  std::map<std::string, std::string> versions{{"isoscale", std::string{build.version}},
                                              {"git", std::string{build.git_hash}},
                                              {"build_type", std::string{build.build_type}},
                                              {"mpi", comm::Environment::library_version()}};
  if (executor == nullptr) return versions;
  const executor::Description& device = executor->describe();
  versions["device"] = device.detail;
  for (const results::RankField& field : results::rank_fields) {
    const auto found = device.facts_text.find(std::string{field.key});
    if (field.is_version && found != device.facts_text.end()) versions.insert(*found);
  }
  return versions;
}

/// Collects the facts of this rank; on the first rank of each node, those of the node, too.
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
    // A control group may hide this GPU from the node's first rank, which collects the facts of all
    // GPUs that it sees. So this rank adds the facts of its own GPU.
    if (auto gpu = preflight::collect_gpu(sources, *rank.gpu)) {
      facts.nodes.emplace_back().node = node;
      facts.nodes.back().gpus = {*std::move(gpu)};
    }
  }
  facts.ranks.push_back(std::move(rank));
  return facts;
}

/// Returns the reason why no sniff test is made; absent if it is made. The sniff test is a short
/// measurement before the run that compares the speeds of ranks.
std::optional<std::string> reason_not_to_sniff(const PreflightWish& wish,
                                               const std::vector<int>& node_of_rank) {
  constexpr std::size_t fewest = 4;  // with fewer ranks it is not clear which speed is normal
  if (wish.executor == nullptr) return "no device was found to run on";
  if (wish.config.share_gpu == settings::ShareGpu::yes) return "ranks share GPUs";
  if (node_of_rank.size() < fewest) {
    if (node_of_rank.size() == 1) return "1 rank is too few to compare with others";
    return fmt::format("{} ranks are too few to compare with each other", node_of_rank.size());
  }
  std::vector<int> everyone(node_of_rank.size());
  std::iota(everyone.begin(), everyone.end(), 0);
  if (wish.executor->describe().name == "host" &&
      plan::share_cores(everyone, wish.facts, node_of_rank)) {
    return "ranks share cores";
  }
  return std::nullopt;
}

}  // namespace

ChosenExecutor choose_executor(const settings::RunConfig& config, const comm::Communicator& world) {
  if (config.device == settings::Device::host) {
    return {.executor = make_host(config, world), .reason = {}};
  }
  const auto [search, vote] = look_for_gpus(world);
  const bool is_automatic = config.device == settings::Device::automatic;
  if (vote.ok) {
    if (const std::string given = settings::slowing_injections(config.injections); !given.empty()) {
      throw base::usage_error(
          "--inject {}: only the host can be slowed down, and there is a GPU to use; "
          "choose --device host, or inject a clock",
          given);
    }
    return {.executor = make_cuda(config, *search.table, world),
            .reason = is_automatic ? std::optional{"every rank has a GPU"} : std::nullopt};
  }
  if (!is_automatic) throw base::UsageError("--device cuda: " + vote.why);
  if (const std::string given = settings::gpu_options_given(config); !given.empty()) {
    throw base::usage_error("{} is about GPUs, and there is none to use: {}", given, vote.why);
  }
  return {.executor = make_host(config, world), .reason = fmt::format("no GPU: {}", vote.why)};
}

executor::Description unseen_gpus() {
  using program::Precision;
  return {.name = "cuda",
          .detail = "GPUs were not examined",
          .precisions = {Precision::f64, Precision::f32, Precision::tf32, Precision::f16,
                         Precision::bf16, Precision::fp8},
          .memory_free = std::nullopt,
          .facts_text = {},
          .facts_number = {}};
}

executor::Description planned_device(const settings::RunConfig& config,
                                     const comm::Communicator& world) {
  if (config.device == settings::Device::cuda && !look_for_gpus(world).second.ok) {
    return unseen_gpus();
  }
  return choose_executor(config, world).executor->describe();
}

results::PreflightData preflight(const PreflightWish& wish, const comm::Communicator& world) {
  const std::vector<int> node_of_rank = comm::node_of_rank(world);
  JobFacts mine = own_facts(wish, world, node_of_rank);
  std::optional<std::string> no_sniff = reason_not_to_sniff(wish, node_of_rank);
  if (!no_sniff) {
    microbench::Sniffed sniffed = microbench::sniff(*wish.executor, world, node_of_rank);
    mine.ranks.front().gemm_rate = sniffed.gemm_rate;
    mine.ranks.front().neighbours = std::move(sniffed.neighbours);
    no_sniff = std::move(sniffed.problem);
  }
  const std::vector<std::string> texts = world.gather(preflight::to_json(mine));
  results::PreflightData data;
  on_root(world, [&] {
    std::vector<JobFacts> parts;
    for (const std::string& text : texts) parts.push_back(preflight::job_facts_from_json(text));
    JobFacts job = preflight::merge(std::move(parts));
    job.device = wish.executor == nullptr ? std::string{settings::name(wish.config.device)}
                                          : wish.executor->describe().name;
    job.share_gpu = wish.config.share_gpu == settings::ShareGpu::yes;
    job.world = world.size();
    job.device_problem = wish.device_problem;
    job.device_reason = wish.device_reason;
    job.sniff_skipped = no_sniff;
    data.results = preflight::check_job(job, wish.config.allowed);
    // The environment variables of a rank are recorded only where they differ from rank 0's.
    for (CheckedRank& rank : job.ranks | std::views::drop(1)) {
      if (rank.environment == job.ranks.front().environment) rank.environment.clear();
    }
    data.facts = preflight::to_json(job);
  });
  return data;
}

void require_no_stop(const results::PreflightData& preflight, const comm::Communicator& world) {
  on_root(world, [&] {
    std::string stops;
    for (const CheckResult& result : preflight.results) {
      const bool is_stop = result.verdict == results::Verdict::stop && !result.allowed;
      if (is_stop) {
        stops += fmt::format("\n  {}", results::to_sentence(result));
      } else if (result.verdict >= results::Verdict::warning) {
        base::warn(fmt::format("preflight: {}", results::to_sentence(result)));
      }
    }
    if (stops.empty()) return;
    throw base::usage_error(
        "preflight stops the run before anything is measured:{}\nFix it, or let it "
        "pass with --allow NAME; isoscale check shows all checks",
        stops);
  });
}

results::PreflightData check(const settings::RunConfig& config, const comm::Communicator& world) {
  const std::vector<machine::MachineFacts> facts = plan::gather_facts(world);
  ChosenExecutor chosen;
  std::optional<std::string> problem;
  try {
    chosen = choose_executor(config, world);
  } catch (const base::UsageError& error) {
    problem = error.what();
  }
  return preflight({.config = config,
                    .executor = chosen.executor.get(),
                    .device_problem = problem,
                    .device_reason = chosen.reason,
                    .facts = facts},
                   world);
}

}  // namespace isoscale::runner
