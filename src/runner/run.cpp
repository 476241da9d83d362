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

#include "base/plural.hpp"
#include "base/text.hpp"
#include "config/resumption.hpp"
#include "config/run_config.hpp"
#include "machine/facts.hpp"
#include "machine/job_environment.hpp"
#include "results/reader.hpp"
#include "runner/device.hpp"
#include "runner/gpu_work.hpp"
#include "runner/launch.hpp"
#include "runner/on_root.hpp"
#include "runner/plan.hpp"
#include "runner/resume.hpp"
#include "runner/site.hpp"
#include "runner/watch/watched_executor.hpp"
#include "units/text.hpp"

namespace isoscale::runner {
namespace {

/// Prints the plan for a machine that a data sheet describes. `why`: the reason that this sheet is
/// assumed; "" where it is named.
void dry_run_on(const std::string& sheet, const std::string& why, const config::RunConfig& asked,
                int ranks, const Services& services) {
  const PricedMachine machine = services.priced_machine(sheet);
  const Site site = site_of(machine, asked, ranks);
  const auto [config, gpu_work] = with_gpu_work(asked, site);
  Plan plan = make_plan(config, site);
  price(machine, config, plan);
  std::string text;
  if (!why.empty()) {
    text = fmt::format(
        "{}: {} is assumed; name another machine with --on (isoscale list systems), or give "
        "--device host.\n",
        why, sheet);
  }
  text += fmt::format(
      "Times are for {} ({} a node, {} a rank): steps as isoscale predict has them, "
      "micro-benchmarks "
      "at usual rates.\n",
      machine.name, base::counted(config.ranks_per_node.value_or(machine.node_ranks), "rank"),
      machine.memory ? units::format(*machine.memory) : "unknown memory");
  services.print(text + gpu_work + describe(plan, config, site.device));
}

/// Prints the plan for the ranks that were started, or, unless this host can do all of it, for the
/// data sheet that is assumed.
void dry_run_here(const config::RunConfig& asked, const Site& here, int started,
                  const Services& services) {
  const Site site = planned_site(here, asked);
  const auto [config, gpu_work] = with_gpu_work(asked, site);
  const bool may_assume = here.device == "host" && config.device == config::Device::automatic;
  if (may_assume) {
    std::optional<std::string> why = beyond_host(asked);
    if (!why) {
      Site boundless = site;
      boundless.memory_free.clear();
      const std::optional<units::Bytes> free = here.memory_free.front();
      if (free) why = beyond_host(make_plan(asked, boundless), site, *free);
    }
    if (why) return dry_run_on(std::string{assumed_sheet}, *why, asked, started, services);
  }
  std::string text = fmt::format(
      "Times are for the {} device at usual rates; --on prices another machine (isoscale list "
      "systems).\n",
      site.device);
  text += gpu_work + describe(make_plan(config, site), config, site.device);
  if (site.nodes == Nodes::unknown) {
    text += fmt::format(
        "{} of {} ranks were started, so nobody knows which share a node (?); give "
        "--ranks-per-node, or start all of them.\n",
        started, site.ranks);
  }
  const bool is_known =
      std::ranges::any_of(site.memory_free, [](const auto& bytes) { return bytes.has_value(); });
  if (!is_known) {
    text += "The memory of the device is unknown: whether points fit was not checked.\n";
  } else if (site.memory_of == MemoryOf::this_machine) {
    text += "Points are checked against the memory of this machine.\n";
  }
  services.print(text);
}

/// Prints the plan; nothing is measured, so no device need be there.
Outcome dry_run(const config::RunConfig& config, const comm::Environment& environment,
                const comm::Communicator& world, const Services& services) {
  if (!config.on.empty()) {
    on_root(world, [&] { dry_run_on(config.on, "", config, world.size(), services); });
    return {};
  }
  const executor::Description device = planned_device(config, environment, world);
  const Site here = make_site(world, device, gather_facts(world));
  on_root(world, [&] { dry_run_here(config, here, world.size(), services); });
  return {};
}

/// What a launch is made of. It lives for as long as anything goes on.
struct Going {
  config::RunConfig config;
  Services services;
  std::unique_ptr<executor::Executor> executor;
  std::optional<WatchedExecutor> watched;
  std::vector<machine::MachineFacts> facts;
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
  if (const auto problem =
          machine::singleton_problem(world.size(), machine::process_environment())) {
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
