// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/run_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "base/warn.hpp"
#include "calibration/fit_calibration.hpp"
#include "machine/job_environment.hpp"
#include "results/hdf5/publish_and_lock_files.hpp"
#include "results/reader/reader.hpp"
#include "results/records/measured_step_time.hpp"
#include "runner/plan/injected_faults.hpp"
#include "runner/preflight_and_executor_choice.hpp"
#include "runner/resume.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::runner {
namespace {

std::string point_title(const plan::PlannedPoint& point) {
  const std::string model = plan::uses_model(point) ? " " + point.request.model.name : "";
  const mesh::Shape& mesh = point.request.mesh;
  // The mesh is left out if the point has one rank, or if it is skipped and so has no mesh.
  const bool has_mesh = point.ranks > 1 && static_cast<int>(mesh.size()) == point.ranks;
  return fmt::format("{}{} on {}{}", point.workload->name, model,
                     base::counted(point.ranks, "rank"),
                     has_mesh ? fmt::format(" ({})", mesh::to_string(mesh)) : "");
}

std::string outcome_text(const results::PointData& data) {
  if (data.status == results::PointStatus::ok && !data.rows.empty()) {
    return fmt::format("{} rows", data.rows.size());
  }
  if (data.status == results::PointStatus::ok) {
    return fmt::format("{} of {} steps count, stopped by {}", results::untraced_times(data).size(),
                       data.step_times.size(), data.stopped_because);
  }
  return fmt::format("{}: {}", results::name(data.status), data.reason);
}

/// Returns the lines that are printed first: which device --device auto chose, and, if only one
/// rank was started, how to start more, which a scaling curve needs.
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

Launch::Launch(const Setting& setting, std::optional<results::RunData> earlier)
    : setting_(setting),
      plan_(plan::make_plan(setting.config, setting.site)),
      path_(output_path(setting.config, setting.facts.front().host)),
      earlier_(std::move(earlier)) {
  for (const plan::PlannedPoint& point : plan_.points) wanted_.insert(point.index);
}

Launch::~Launch() { setting_.services.supervisor.set_abort_handler(nullptr); }

base::ExitCode Launch::measure() {
  watch::Supervisor& supervisor = setting_.services.supervisor;
  supervisor.set_file(path_);
  supervisor.set_abort_handler([this](const std::string& why) { record_abort(why); });
  if (!opened()) return exit_code();
  const settings::RunConfig& config = setting_.config;
  const bool speaks = setting_.world.rank() == 0 && config.verbosity == settings::Verbosity::normal;
  std::optional<units::Nanoseconds> deadline;
  if (config.budget) deadline = setting_.begin + units::to_nanoseconds(*config.budget);
  progress_.emplace(speaks ? watch::Progress::detect() : watch::Progress::Style::silent,
                    static_cast<int>(plan_.points.size()), planned_times(), deadline);
  progress_->tell(&supervisor.activity());
  schedule_.emplace(plan_, config, setting_.site.device, wanted_, retried_);
  while (begin_next()) {
    const plan::PlannedPoint& point = plan_.points[static_cast<std::size_t>(current_->index)];
    const units::Seconds began = elapsed();
    progress_->begin_point(point.index, point_title(point));
    results::PointData data;
    try {
      data = record(run_point(point, context(*current_)));
    } catch (...) {
      supervisor.fail_alone();
      throw;
    }
    const bool failed = data.status == results::PointStatus::failed;
    schedule_->done(*current_, failed ? std::nullopt : std::optional{elapsed() - began});
    failed_ += failed ? 1 : 0;
    if (!data.rows.empty()) measured_.points.push_back(std::move(data));
  }
  record_left_out();
  progress_->finish();
  on_root(setting_.world, [&] { finish(); });
  return exit_code();
}

bool Launch::opened() {
  const bool is_new = setting_.config.resume.empty();
  on_root(setting_.world, [&] {
    if (is_new) {
      const bool replaces = setting_.config.if_exists == settings::IfExists::overwrite;
      return results::check_output(
          path_, replaces ? results::Publish::replace : results::Publish::only_new);
    }
    results::check_output(path_, results::Publish::replace,
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

/// Collective: returns the exit code of a finished launch, which only rank 0 knows beforehand.
base::ExitCode Launch::exit_code() const {
  const bool is_moved = file_ && !file_->moved().empty();
  const bool is_whole = failed_ == 0 && left_hung_.empty() && !is_moved;  // valid on rank 0 only
  return setting_.world.broadcast(is_whole) ? base::ExitCode::done : base::ExitCode::failed;
}

/// Locks the run file, so that no other thread can record that the current point was aborted. A
/// thread that has to end the process waits for this lock, but for a second at most.
std::unique_lock<std::timed_mutex> Launch::hold_file() const {
  return std::unique_lock{setting_.services.supervisor.file_mutex()};
}

/// Writes a point to the run file, and returns the point as written. If there is too little memory
/// to write its data, the point is written as failed.
results::PointData Launch::commit(results::PointData data) {
  const auto lock = hold_file();
  try {
    file_->commit(data);
  } catch (const std::bad_alloc& error) {
    const std::string why = comm::problem_of(error);
    data = as_failed(data.index, why);
    file_->commit(data);
  }
  last_in_file_ = data.index;
  setting_.services.supervisor.set_file(file_->path());
  return data;
}

units::Seconds Launch::elapsed() const { return units::to_seconds(comm::now() - setting_.begin); }

std::map<int, units::Seconds> Launch::planned_times() const {
  std::map<int, units::Seconds> times;
  for (const auto& [index, loop] :
       plan::expected_loops(plan_, setting_.config, setting_.site.device)) {
    if (!wanted_.contains(index)) continue;
    const plan::PlannedPoint& point = plan_.points[static_cast<std::size_t>(index)];
    times[index] = plan::total(plan::estimate(point, setting_.config, setting_.site.device), loop);
  }
  return times;
}

/// Collective: chooses the next point and the time for it, the same on every rank; returns false if
/// no point is left. Rank 0 chooses, since the budget is counted by its clock and only it knows
/// which points are wanted.
bool Launch::begin_next() {
  const comm::Communicator& world = setting_.world;
  watch::Supervisor& supervisor = setting_.services.supervisor;
  ends_soon_ = world.all_max(supervisor.shall_end_soon() ? 1.0 : 0.0) > 0;
  const bool chooses = world.rank() == 0 && !ends_soon_;
  const std::optional<plan::Turn> next = chooses ? schedule_->next(elapsed()) : std::nullopt;
  const plan::Turn turn = world.broadcast(next.value_or(plan::Turn{.index = -1}));
  if (turn.index >= 0) {
    const auto left = world.broadcast(std::ssize(schedule_->waiting()) - 1 + failed_);
    supervisor.set_point(turn.index, static_cast<int>(left));
  }
  const auto lock = hold_file();
  current_ = turn.index < 0 ? std::nullopt : std::optional{turn};
  return current_.has_value();
}

measure::PointContext Launch::context(const plan::Turn& turn) {
  const settings::RunConfig& config = setting_.config;
  return {.config = config,
          .site = setting_.site,
          .facts = setting_.facts,
          .world = setting_.world,
          .executor = setting_.executor,
          .effort = {.precision = config.precision,
                     .max_time = turn.loop,
                     .overtime = turn.most / turn.loop,
                     .trace_steps = config.trace_steps},
          .progress = *progress_,
          .rank_facts = rank_facts_};
}

/// Collective: writes a point to the run file, and returns it on rank 0 as it was written.
results::PointData Launch::record(results::PointData data) {
  setting_.services.supervisor.activity().doing("writing the run file");
  on_root(setting_.world, [&] { data = commit(std::move(data)); });
  progress_->end_point(outcome_text(data));
  return data;
}

/// Records the points for which the budget left no time, or before which a signal ended the run.
void Launch::record_left_out() {
  on_root(setting_.world, [&] {
    if (ends_soon_ && !schedule_->waiting().empty()) {
      header_.warnings.push_back(
          fmt::format("asked to end (SIGUSR1) with {} of {} points left; continue with: isoscale "
                      "run --resume {}",
                      schedule_->waiting().size(), plan_.points.size(), file_->path().string()));
      base::warn(header_.warnings.back());
    }
    for (const int index : schedule_->waiting()) {
      const plan::PlannedPoint& point = plan_.points[static_cast<std::size_t>(index)];
      progress_->begin_point(index, point_title(point));
      results::PointData data = describe_point(point);  // includes the planned mesh
      const std::string_view why = ends_soon_ ? plan::signal_reason : plan::budget_reason;
      measure::end_as(results::PointStatus::skipped, std::string{why}, data);
      progress_->end_point(outcome_text(commit(std::move(data))));
    }
  });
}

void Launch::finish() {
  if (const auto shortest = schedule_->shortest()) {
    header_.warnings.push_back(fmt::format(
        "--budget {} gave {} less time than --max-time {}, down to {}",
        units::format(*setting_.config.budget), base::counted(schedule_->shortened(), "point"),
        units::format(setting_.config.max_time), units::format(*shortest)));
  }
  if (setting_.config.budget) {
    if (const auto warning =
            plan::no_curve_warning(plan_, schedule_->waiting(), *setting_.config.budget)) {
      header_.warnings.push_back(*warning);
      base::warn(*warning);
    }
  }
  if (!measured_.points.empty()) {
    std::ranges::sort(measured_.points, {}, &results::PointData::index);
    header_.calibration = calibration::calibrate(measured_);
  }
  header_.ended = base::utc_now();
  header_.complete = true;
  file_->finish(header_);
  if (setting_.config.verbosity != settings::Verbosity::normal) return;
  setting_.services.print(fmt::format("wrote {}\n", file_->path().string()));
  setting_.services.show_file(file_->path());
}

void Launch::record_abort(const std::string& why) {
  if (!current_ || !file_ || last_in_file_ == current_->index) return;
  file_->commit(as_failed(current_->index, why));
}

results::PointData Launch::as_failed(int index, const std::string& why) const {
  const plan::PlannedPoint& point = plan_.points[static_cast<std::size_t>(index)];
  results::PointData data = describe_point(point);
  measure::end_as(results::PointStatus::failed, why, data);
  data.injections = point.injections;
  if (!data.injections.empty()) data.labels.emplace_back("injected");
  data.ended = base::utc_now();
  return data;
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
  settings::RunConfig config = asked;
  std::optional<results::RunData> earlier;  // the run that --resume continues, on rank 0 only
  if (!asked.resume.empty()) {
    on_root(world, [&] {
      earlier = results::read_run(asked.resume);
      require_ranks(*earlier, asked.resume.string(), world.size());
    });
    config = settings::resumed(asked, world.broadcast(earlier ? earlier->config_toml : ""));
  }
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
