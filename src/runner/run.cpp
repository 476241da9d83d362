// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "machine/facts.hpp"
#include "machine/job_environment.hpp"
#include "results/hdf5/run_files.hpp"
#include "results/reader/reader.hpp"
#include "runner/launch.hpp"
#include "runner/plan/plan.hpp"
#include "runner/plan/rank_faults.hpp"
#include "runner/plan/schedule.hpp"
#include "runner/plan/site.hpp"
#include "runner/preflight.hpp"
#include "runner/resume.hpp"
#include "runner/run_file.hpp"
#include "runner/watch/progress.hpp"

namespace isoscale::runner {
namespace {

/// Collective: returns the run that --resume continues (on rank 0 only; absent on others), and the
/// configuration with which it is continued (on all ranks).
std::pair<std::optional<results::RunData>, settings::RunConfig> read_resumed(
    const settings::RunConfig& asked, const comm::Communicator& world) {
  std::optional<results::RunData> run;
  on_root(world, [&] {
    run = results::read_run(asked.resume);
    require_ranks(*run, asked.resume.string(), world.size());
  });
  const std::string toml = world.broadcast(run ? run->config_toml : "");
  return {std::move(run), settings::resumed(asked, toml)};
}

/// Returns the lines that are printed first: which device --device auto chose, and, if there is
/// only one rank, how to get a curve.
std::string opening_lines(const executor::Description& device,
                          const std::optional<std::string>& reason, int ranks) {
  std::string text;
  if (reason) {
    text = device.name == "host"
               ? std::string{"device: host (no GPU found)\n"}
               : fmt::format("device: {} ({}); {}\n", device.name, device.detail, *reason);
  }
  if (ranks == 1) text += "1 rank: a curve needs more; start them with mpirun -np 2 isoscale run\n";
  return text;
}

}  // namespace

bool Launch::opened() {
  const bool is_new = setting_.config.resume.empty();
  on_root(setting_.world, [&] {
    if (is_new) return results::check_output(path_, setting_.config.if_exists);
    results::check_output(path_, settings::IfExists::overwrite,
                          "--resume writes into this file: resume a copy of it elsewhere");
  });
  results::PreflightData looked = preflight({.config = setting_.config,
                                             .executor = &setting_.executor,
                                             .device_reason = setting_.device_reason,
                                             .facts = setting_.facts},
                                            setting_.world);
  require_no_stop(looked, setting_.world);
  const executor::Description& device = setting_.executor.describe();
  rank_facts_ =
      gather_rank_facts(setting_.world, device, setting_.facts, setting_.site.node_of_rank);
  bool is_open = true;
  on_root(setting_.world, [&] {
    header_ = make_header(setting_.config, setting_.site, device, rank_facts_);
    header_.preflight = std::move(looked);
    header_.planned = static_cast<int>(plan_.points.size());
    if (is_new) {
      create();
    } else {
      is_open = reopen();
    }
    if (is_open) warn_of_time_limit();
  });
  return setting_.world.broadcast(is_open);
}

void Launch::create() {
  // Injected faults that affect no point are useless, so the user is warned of them.
  for (const std::string& text : plan::idle_injections(setting_.config.injections, plan_)) {
    header_.warnings.push_back(fmt::format("--inject {} touches no point of this run", text));
    base::warn(header_.warnings.back());
  }
  for (const std::string& sentence : plan::idle_options(plan_)) {
    header_.warnings.push_back(sentence);
    base::warn(sentence);
  }
  measured_ = header_;
  file_.emplace(results::RunWriter{path_, header_, setting_.config.if_exists}, path_, header_,
                fallback_of(setting_.config));
}

void Launch::warn_of_time_limit() const {
  units::Seconds expected{0};
  for (const int index : wanted_) {
    const plan::PlannedPoint& point = plan_.points[static_cast<std::size_t>(index)];
    const plan::PointTime time = plan::estimate(point, setting_.config, setting_.site.device);
    expected += plan::total(time, time.most);
  }
  if (setting_.config.budget) expected = std::min(expected, *setting_.config.budget);
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const auto warning = machine::time_limit_warning(
      machine::time_limit(machine::process_environment(), now), expected);
  if (warning) base::warn(*warning);
}

base::ExitCode run(const settings::RunConfig& asked, const comm::Communicator& world,
                   const Services& services) {
  const units::Nanoseconds begin = comm::now();
  if (const auto problem =
          machine::singleton_problem(world.size(), machine::process_environment())) {
    throw base::UsageError(*problem);
  }
  if (asked.mode == settings::Mode::dry_run) {
    dry_run(asked, world, services);
    return base::ExitCode::done;
  }
  auto [earlier, config] = asked.resume.empty()
                               ? std::pair{std::optional<results::RunData>{}, asked}
                               : read_resumed(asked, world);
  const auto [executor, reason] = choose_executor(config, world);
  const std::vector<machine::MachineFacts> facts = plan::gather_facts(world);
  const plan::Site site = plan::make_site(world, executor->describe(), facts);
  std::string gpu_work;
  std::tie(config, gpu_work) = plan::with_gpu_work(config, site);
  services.supervisor.set_timeout(config.timeout);
  watch::WatchedExecutor watched{*executor, services.supervisor.activity(), world};
  Launch launch{{.config = config,
                 .services = services,
                 .world = world,
                 .executor = watched,
                 .facts = facts,
                 .site = site,
                 .begin = begin,
                 .device_reason = reason},
                std::move(earlier)};
  if (world.rank() == 0 && config.verbosity == settings::Verbosity::normal) {
    services.print(opening_lines(watched.describe(), reason, world.size()) + gpu_work);
  }
  return launch.measure();
}

}  // namespace isoscale::runner
