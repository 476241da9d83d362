// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/run.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "config/resumption.hpp"
#include "results/reader.hpp"
#include "runner/device.hpp"
#include "runner/launch.hpp"
#include "runner/on_root.hpp"
#include "runner/plan.hpp"
#include "runner/resume.hpp"
#include "runner/site.hpp"
#include "system/facts.hpp"

namespace isoscale::runner {
namespace {

/// Prints the plan; nothing is measured, so no device need be there.
Outcome dry_run(const config::RunConfig& config, const comm::Environment& environment,
                const comm::Communicator& world, const Services& services) {
  const executor::Description device = planned_device(config, environment, world);
  const Site site = planned_site(make_site(world, device, gather_facts(world)), config);
  const Plan plan = make_plan(config, site);
  if (world.rank() != 0) return {};
  services.print(describe(plan, config, site.device));
  if (site.nodes == Nodes::unknown) {
    services.print(
        fmt::format("{} of {} ranks were started, so nobody knows which share a node (?); give "
                    "--ranks-per-node, or start all of them.\n",
                    world.size(), site.ranks));
  }
  return {};
}

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
  const auto [executor, reason] = choose_executor(config, environment, world);
  const std::vector<system::MachineFacts> facts = gather_facts(world);
  Launch launch{{.config = config,
                 .services = services,
                 .world = world,
                 .executor = *executor,
                 .facts = facts,
                 .begin = begin,
                 .device_reason = reason.empty() ? std::nullopt : std::optional{reason}},
                std::move(earlier)};
  if (world.rank() == 0 && !reason.empty() && config.verbosity == config::Verbosity::normal) {
    services.print(fmt::format("device: {} ({}); {}\n", executor->describe().name,
                               executor->describe().detail, reason));
  }
  return launch.measure();
}

}  // namespace isoscale::runner
