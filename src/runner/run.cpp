// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "base/build_info.hpp"
#include "base/log.hpp"
#include "results/output.hpp"
#include "results/writer.hpp"
#include "runner/device.hpp"
#include "runner/faults.hpp"
#include "runner/on_root.hpp"
#include "runner/plan.hpp"
#include "runner/point.hpp"
#include "runner/preflight.hpp"
#include "runner/progress.hpp"
#include "runner/site.hpp"
#include "system/facts.hpp"
#include "units/text.hpp"

namespace isoscale::runner {
namespace {

std::filesystem::path output_path(const config::RunConfig& config, const std::string& host) {
  if (!config.output.empty()) return config.output;
  std::string workloads;
  std::set<std::string> named;
  for (const config::Experiment& experiment : config.experiments) {
    if (!named.insert(experiment.workload).second) continue;
    workloads += (workloads.empty() ? "" : "-") + experiment.workload;
  }
  std::string time = utc_now(), where = host;
  std::erase(time, ':');
  std::erase(time, '-');
  std::replace_if(
      where.begin(), where.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-'; }, '_');
  return fmt::format("isoscale-{}-{}-{}.h5", workloads, where, time);
}

std::string random_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

results::RunData make_header(const config::RunConfig& config, const Site& site,
                             const executor::Description& device,
                             std::span<const system::MachineFacts> facts,
                             std::span<const RankSoftware> software) {
  const base::BuildInfo& build = base::build_info();
  results::RunData data;
  data.id = random_id();
  data.created = utc_now();
  data.isoscale_version = build.version;
  data.git_hash = build.git_hash;
  data.compiler = build.compiler;
  data.build_type = build.build_type;
  data.device = device.name;
  data.device_detail = device.detail;
  data.mpi_library = comm::Environment::library_version();
  data.command_line = config.command_line;
  data.config_toml = config::to_toml(config);
  data.ranks = site.ranks;
  data.nodes = 1 + *std::max_element(site.node_of_rank.begin(), site.node_of_rank.end());
  data.environment = system::recorded_environment(system::process_environment());
  data.rank_facts = rank_facts(facts, software, site.node_of_rank);
  if (site.oversubscribed) {
    data.warnings.emplace_back(
        "ranks share cores: points labelled oversubscribed give no scaling result");
  }
  if (const auto warning = device.facts_text.find("blas_warning");
      warning != device.facts_text.end()) {
    data.warnings.push_back(warning->second);
  }
  if (data.build_type != "Release" && data.build_type != "RelWithDebInfo") {
    data.warnings.push_back(fmt::format(
        "this is a {} build: its own overhead is not that of a release", data.build_type));
  }
  return data;
}

std::string point_title(const PlannedPoint& point) {
  const std::string model = uses_model(point) ? " " + point.request.model.name : "";
  return fmt::format("{}{} on {} rank{} ({})", point.workload->name, model, point.ranks,
                     point.ranks == 1 ? "" : "s", mesh::to_string(point.request.mesh));
}

std::string outcome_text(const results::PointData& data) {
  if (data.status == results::PointStatus::ok && !data.rows.empty()) {
    return fmt::format("{} rows", data.rows.size());
  }
  if (data.status == results::PointStatus::ok) {
    return fmt::format("{} steps, stopped by {}", data.step_times.size(), data.stopped_because);
  }
  return fmt::format("{}: {}", results::name(data.status), data.reason);
}

/// A plan may be for more ranks than were started: on as many nodes as there are, whose memory
/// nobody has looked at.
Site planned_site(Site site, const config::RunConfig& config) {
  const int ranks = config.ranks.empty() ? 0 : config.ranks.back();
  if (ranks <= site.ranks) return site;
  site.ranks = ranks;
  site.node_of_rank.resize(static_cast<std::size_t>(ranks), site.node_of_rank.back());
  site.memory_free.clear();
  return site;
}

/// One launch once it is known what is to be done.
class Launch {
 public:
  Launch(const config::RunConfig& config, const Services& services, const comm::Communicator& world,
         executor::Executor& executor, std::span<const system::MachineFacts> facts, Site site)
      : config_(config),
        services_(services),
        world_(world),
        executor_(executor),
        facts_(facts),
        site_(std::move(site)),
        plan_(make_plan(config, site_)),
        path_(output_path(config, facts.front().host)) {}

  Outcome measure() {
    results::RunData header;
    std::unique_ptr<results::RunWriter> writer;
    on_root(world_, [&] { results::check_output(path_, config_.if_exists); });
    results::PreflightData looked =
        preflight({.config = config_, .executor = &executor_, .facts = facts_}, world_);
    require_no_stop(looked, world_);
    const std::vector<RankSoftware> software = gather_software(world_, executor_.describe());
    on_root(world_, [&] {
      header = make_header(config_, site_, executor_.describe(), facts_, software);
      header.preflight = std::move(looked);
      add_idle_injections(header);
      writer = std::make_unique<results::RunWriter>(path_, header, config_.if_exists);
    });
    const bool speaks = world_.rank() == 0 && config_.verbosity == config::Verbosity::normal;
    Progress progress{speaks ? Progress::detect() : Progress::Style::silent,
                      static_cast<int>(plan_.points.size())};
    const PointContext context{.config = config_,
                               .site = site_,
                               .facts = facts_,
                               .world = world_,
                               .executor = executor_,
                               .effort = {.precision = config_.precision,
                                          .max_time = config_.max_time,
                                          .trace_steps = config_.trace_steps,
                                          .half_width = services_.half_width,
                                          .nominal_confidence = services_.nominal_confidence,
                                          .last_change = services_.last_change},
                               .progress = progress,
                               .rank_facts = header.rank_facts};
    bool all_ok = true;
    results::RunData measured = header;  // the points that calibrate
    for (const PlannedPoint& point : plan_.points) {
      progress.begin_point(point.index, point_title(point));
      results::PointData data = run_point(point, context);
      on_root(world_, [&] { writer->commit(data); });
      progress.end_point(outcome_text(data));
      all_ok = all_ok && data.status != results::PointStatus::failed;
      if (!data.rows.empty()) measured.points.push_back(std::move(data));
    }
    progress.finish();
    on_root(world_, [&] {
      if (!measured.points.empty()) header.calibration = services_.calibrate(measured);
      header.ended = utc_now();
      header.complete = true;
      writer->finish(header);
    });
    return {.exit_code = all_ok ? base::ExitCode::done : base::ExitCode::failed, .file = path_};
  }

 private:
  /// What was asked for and will not happen must not pass for what happened.
  void add_idle_injections(results::RunData& header) const {
    for (const std::string& text : idle_injections(config_.injections, plan_)) {
      header.warnings.push_back(fmt::format("--inject {} touches no point of this run", text));
      base::warn(header.warnings.back());
    }
  }

  const config::RunConfig& config_;
  const Services& services_;
  const comm::Communicator& world_;
  executor::Executor& executor_;
  std::span<const system::MachineFacts> facts_;
  Site site_;
  Plan plan_;
  std::filesystem::path path_;
};

/// Prints the plan; nothing is measured, so no device need be there.
Outcome dry_run(const config::RunConfig& config, const comm::Environment& environment,
                const comm::Communicator& world, const Services& services) {
  const executor::Description device = planned_device(config, environment, world);
  const Site site = planned_site(make_site(world, device, gather_facts(world)), config);
  const Plan plan = make_plan(config, site);
  if (world.rank() == 0) services.print(describe(plan, config));
  return {};
}

}  // namespace

Outcome run(const config::RunConfig& config, const comm::Environment& environment,
            const comm::Communicator& world, const Services& services) {
  if (const auto problem = system::singleton_problem(world.size(), system::process_environment())) {
    throw base::UsageError(*problem);
  }
  if (config.mode == config::Mode::dry_run) return dry_run(config, environment, world, services);
  const auto [executor, reason] = choose_executor(config, environment, world);
  const std::vector<system::MachineFacts> facts = gather_facts(world);
  Launch launch{config,    services, world,
                *executor, facts,    make_site(world, executor->describe(), facts)};
  if (world.rank() == 0 && !reason.empty() && config.verbosity == config::Verbosity::normal) {
    services.print(fmt::format("device: {} ({}); {}\n", executor->describe().name,
                               executor->describe().detail, reason));
  }
  return launch.measure();
}

}  // namespace isoscale::runner
