// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "config/resumption.hpp"
#include "results/reader.hpp"
#include "runner/device.hpp"
#include "runner/gpu_work.hpp"
#include "runner/launch.hpp"
#include "runner/on_root.hpp"
#include "runner/plan.hpp"
#include "runner/resume.hpp"
#include "runner/site.hpp"
#include "runner/watch/watched_executor.hpp"
#include "system/facts.hpp"

namespace isoscale::runner {
namespace {

/// Prints the plan; nothing is measured, so no device need be there.
Outcome dry_run(const config::RunConfig& asked, const comm::Environment& environment,
                const comm::Communicator& world, const Services& services) {
  const executor::Description device = planned_device(asked, environment, world);
  const Site site = planned_site(make_site(world, device, gather_facts(world)), asked);
  const auto [config, gpu_work] = with_gpu_work(asked, site);
  const Plan plan = make_plan(config, site);
  if (world.rank() != 0) return {};
  services.print(gpu_work + describe(plan, config, site.device));
  if (site.nodes == Nodes::unknown) {
    services.print(
        fmt::format("{} of {} ranks were started, so nobody knows which share a node (?); give "
                    "--ranks-per-node, or start all of them.\n",
                    world.size(), site.ranks));
  }
  const bool is_known =
      std::ranges::any_of(site.memory_free, [](const auto& bytes) { return bytes.has_value(); });
  if (!is_known) {
    services.print("The memory of the device is unknown: whether points fit was not checked.\n");
  } else if (site.memory_of == MemoryOf::this_machine) {
    services.print("Points are checked against the memory of this machine.\n");
  }
  return {};
}

/// What a launch is made of. It lives for as long as anything goes on.
struct Going {
  config::RunConfig config;
  Services services;
  std::unique_ptr<executor::Executor> executor;
  std::optional<WatchedExecutor> watched;
  std::vector<system::MachineFacts> facts;
};

/// The run that --resume goes on with, on rank 0; its settings as the file keeps them, everywhere.
struct Resumed {
  std::optional<results::RunData> run;
  config::RunConfig config;
};
Resumed read_resumed(const config::RunConfig& asked, const comm::Communicator& world) {
  Resumed resumed;
  on_root(world, [&] {
    resumed.run = results::read_run(asked.resume);
    require_ranks(*resumed.run, asked.resume.string(), world.size());
  });
  const std::string toml = world.broadcast(resumed.run ? resumed.run->config_toml : "");
  resumed.config = config::resumed(asked, toml);
  return resumed;
}

/// The device, where --device auto chose it, and how to get a curve where there is one rank.
std::string opening_lines(const executor::Description& device, const std::string& reason,
                          int ranks) {
  std::string text;
  if (!reason.empty()) {
    text = device.name == "host"
               ? std::string{"device: host (no GPU found)\n"}
               : fmt::format("device: {} ({}); {}\n", device.name, device.detail, reason);
  }
  if (ranks == 1) text += "1 rank: a curve needs more; start them with mpirun -np 2 isoscale run\n";
  return text;
}

}  // namespace

Outcome run(const config::RunConfig& asked, const comm::Environment& environment,
            const comm::Communicator& world, const Services& services) {
  const units::Nanoseconds begin = comm::now();
  if (const auto problem = system::singleton_problem(world.size(), system::process_environment())) {
    throw base::UsageError(*problem);
  }
  if (asked.mode == config::Mode::dry_run) return dry_run(asked, environment, world, services);
  const bool is_new = asked.resume.empty();
  auto [earlier, config] =
      is_new ? Resumed{.run = {}, .config = asked} : read_resumed(asked, world);
  const auto going = std::make_shared<Going>();
  going->config = std::move(config);
  auto [executor, reason] = choose_executor(going->config, environment, world);
  going->executor = std::move(executor);
  going->facts = gather_facts(world);
  going->services = services;
  const Site site = make_site(world, going->executor->describe(), going->facts);
  std::string gpu_work;
  std::tie(going->config, gpu_work) = with_gpu_work(going->config, site);
  if (Supervisor* const supervisor = services.supervisor) {
    supervisor->set_timeout(going->config.timeout);
    going->watched.emplace(*going->executor, supervisor->board(), world);
  }
  executor::Executor& used =
      going->watched ? static_cast<executor::Executor&>(*going->watched) : *going->executor;
  auto* const launch =
      new Launch{{.config = going->config,
                  .services = going->services,
                  .world = &world,
                  .executor = used,
                  .facts = going->facts,
                  .site = site,
                  .begin = begin,
                  .device_reason = reason.empty() ? std::nullopt : std::optional{reason}},
                 std::move(earlier)};
  // It may go on after this returned: it keeps what it is made of.
  const std::shared_ptr<Launch> kept{launch, [going](Launch* made) { delete made; }};
  if (world.rank() == 0 && going->config.verbosity == config::Verbosity::normal) {
    services.print(opening_lines(used.describe(), reason, world.size()) + gpu_work);
  }
  return kept->measure();
}

}  // namespace isoscale::runner
