// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "executor/host/host.hpp"
#include "executor/plugin.hpp"
#include "results/point_tables.hpp"
#include "results/reader.hpp"

namespace isoscale::runner {
namespace {

/// What `work` returns; a base::Error of any rank is thrown as base::UsageError on all.
template <class Work>
void together(const comm::Communicator& world, const Work& work) {
  std::string problem;
  try {
    work();
  } catch (const base::Error& error) {
    problem = error.what();
  }
  if (const comm::Vote vote = comm::all_ok(world, problem); !vote.ok) {
    throw base::UsageError(vote.why);
  }
}

executor::HostStreams streams_of(const config::RunConfig& config,
                                 const comm::Environment& environment) {
  using config::HostStreams;
  switch (config.host_streams) {
    case HostStreams::automatic:
      return executor::HostStreams::automatic;
    case HostStreams::folded:
      return executor::HostStreams::folded;
    case HostStreams::threads:
      break;
  }
  // The executor would fold them; what was asked for by name is not to be something else.
  if (environment.thread_level() < MPI_THREAD_MULTIPLE) {
    throw base::UsageError(
        "--host-streams threads: this MPI does not let several threads communicate; leave it out, "
        "or use a build of MPI that gives MPI_THREAD_MULTIPLE");
  }
  return executor::HostStreams::threads;
}

std::unique_ptr<executor::Executor> make_host(const config::RunConfig& config,
                                              const comm::Environment& environment,
                                              const comm::Communicator& world) {
  const std::vector<int> nodes = comm::node_of_rank(world);
  const int mine = nodes[static_cast<std::size_t>(world.rank())];
  return executor::make_host_executor(
      {.blas_threads = config.blas_threads,
       .streams = streams_of(config, environment),
       .ranks_on_node = static_cast<int>(std::count(nodes.begin(), nodes.end(), mine)),
       .thread_level = environment.thread_level()});
}

/// The choices of an earlier run, read by rank 0 and told to all as the file has them.
std::vector<executor::GemmChoice> known_algorithms(const config::RunConfig& config,
                                                   const comm::Communicator& world) {
  std::vector<executor::GemmChoice> known;
  if (config.gemm_algorithms.empty()) return known;
  together(world, [&] {
    const std::string file = config.gemm_algorithms.string();
    const auto run = results::read_run(config.gemm_algorithms);
    for (const results::GemmChoice& choice : results::choices_of_run(run, file)) {
      known.push_back({.shape = choice.shape,
                       .algorithm = choice.algorithm,
                       .workspace = units::Bytes{static_cast<std::uint64_t>(choice.workspace)}});
    }
  });
  return known;
}

std::unique_ptr<executor::Executor> make_cuda(const config::RunConfig& config,
                                              const executor::Plugin& plugin,
                                              const comm::Communicator& world) {
  executor::CudaOptions options{.gpu_bind = config.gpu_bind,
                                .share = config.share_gpu,
                                .graph = config.graph,
                                .nvtx = config.nvtx,
                                .known_algorithms = known_algorithms(config, world)};
  if (config.timeout <= units::Seconds{}) options.mark_cost.reset();  // nobody watches
  // What NCCL could not set up is told as that, and the sweep goes on, before it passes for a hang.
  constexpr double before_hang = 0.9;
  options.communicator_timeout = before_hang * config.timeout;
  return plugin.table->make(options, world);
}

/// The plugin and what speaks against using it.
struct Gpus {
  executor::PluginSearch search;
  comm::Vote usable;  ///< on every rank
};
Gpus look_for_gpus(const comm::Communicator& world) {
  executor::PluginSearch search = executor::open_cuda_plugin();
  const std::string problem = search.plugin ? search.plugin->table->problem() : search.problem;
  return {.search = std::move(search), .usable = comm::all_ok(world, problem)};
}

}  // namespace

ChosenExecutor choose_executor(const config::RunConfig& config,
                               const comm::Environment& environment,
                               const comm::Communicator& world) {
  if (config.device == config::Device::host) {
    return {.executor = make_host(config, environment, world), .reason = {}};
  }
  const auto [search, vote] = look_for_gpus(world);
  const bool is_automatic = config.device == config::Device::automatic;
  if (vote.ok) {
    if (const std::string given = config::slowing_injections(config.injections); !given.empty()) {
      throw base::UsageError(
          fmt::format("--inject {}: only the host can be slowed down, and there is a GPU to use; "
                      "choose --device host, or inject a clock",
                      given));
    }
    return {.executor = make_cuda(config, *search.plugin, world),
            .reason = is_automatic ? "every rank has a GPU" : ""};
  }
  if (!is_automatic) throw base::UsageError("--device cuda: " + vote.why);
  if (const std::string given = config::gpu_options_given(config); !given.empty()) {
    throw base::UsageError(
        fmt::format("{} is about GPUs, and there is none to use: {}", given, vote.why));
  }
  return {.executor = make_host(config, environment, world),
          .reason = fmt::format("no GPU: {}", vote.why)};
}

executor::Description unseen_gpus() {
  using workloads::Precision;
  return {.name = "cuda",
          .detail = "GPUs were not examined",
          .precisions = {Precision::f64, Precision::f32, Precision::tf32, Precision::f16,
                         Precision::bf16, Precision::fp8},
          .memory_free = std::nullopt,
          .memory_pool = executor::MemoryPool::rank,
          .facts_text = {},
          .facts_number = {}};
}

executor::Description planned_device(const config::RunConfig& config,
                                     const comm::Environment& environment,
                                     const comm::Communicator& world) {
  if (config.device == config::Device::cuda && !look_for_gpus(world).usable.ok) {
    return unseen_gpus();
  }
  return choose_executor(config, environment, world).executor->describe();
}

}  // namespace isoscale::runner
