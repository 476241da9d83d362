// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "base/utc.hpp"
#include "config/arguments.hpp"
#include "config/command_line.hpp"
#include "machine/job_environment.hpp"
#include "results/output.hpp"
#include "results/run_files.hpp"
#include "runner/describe_point.hpp"
#include "runner/estimate.hpp"
#include "runner/faults.hpp"
#include "runner/header.hpp"
#include "runner/on_root.hpp"
#include "runner/preflight.hpp"
#include "runner/problem.hpp"
#include "runner/resume.hpp"
#include "units/text.hpp"

namespace isoscale::runner {
namespace {

std::string point_title(const PlannedPoint& point) {
  const std::string model = uses_model(point) ? " " + point.request.model.name : "";
  const mesh::Shape& mesh = point.request.mesh;
  // A point that is skipped may have no mesh, and one rank has nothing to say of its own.
  const bool has_mesh = point.ranks > 1 && static_cast<int>(mesh.size()) == point.ranks;
  return fmt::format("{}{} on {}{}", point.workload->name, model,
                     base::counted(point.ranks, "rank"),
                     has_mesh ? fmt::format(" ({})", mesh::to_string(mesh)) : "");
}

/// Steps from which the step time is computed.
std::size_t counted_steps(const results::PointData& data) {
  std::size_t counted = 0;
  for (auto i = static_cast<std::size_t>(data.warm_up_steps); i < data.traced.size(); ++i) {
    counted += data.traced[i] == 0 && data.dropped[i] == 0 ? 1 : 0;
  }
  return counted;
}

std::string outcome_text(const results::PointData& data) {
  if (data.status == results::PointStatus::ok && !data.rows.empty()) {
    return fmt::format("{} rows", data.rows.size());
  }
  if (data.status == results::PointStatus::ok) {
    return fmt::format("{} of {} steps count, stopped by {}", counted_steps(data),
                       data.step_times.size(), data.stopped_because);
  }
  return fmt::format("{}: {}", results::name(data.status), data.reason);
}

std::filesystem::path fallback_of(const config::RunConfig& config) {
  return config.fallback_dir.empty() ? default_fallback() : config.fallback_dir;
}

/// A point for which there was no time.
results::PointData left_out(const PlannedPoint& point, std::string_view reason) {
  results::PointData data = describe_point(point);  // as planned: its mesh is known
  data.status = results::PointStatus::skipped;
  data.reason = reason;
  return data;
}

}  // namespace

Launch::Launch(const Setting& setting, std::optional<results::RunData> earlier)
    : setting_(setting),
      site_(setting.site),
      plan_(make_plan(setting.config, site_)),
      path_(output_path(setting.config, setting.facts.front().host)),
      earlier_(std::move(earlier)) {
  for (const PlannedPoint& point : plan_.points) wanted_.insert(point.index);
}

Outcome Launch::measure() {
  Supervisor* const supervisor = setting_.services.supervisor;
  if (supervisor != nullptr) {
    supervisor->set_file(path_);
    supervisor->set_last_words(
        [self = shared_from_this()](const std::string& why) { self->last_words(why); });
  }
  if (!opened()) return {};
  const config::RunConfig& config = setting_.config;
  const bool speaks = setting_.world->rank() == 0 && config.verbosity == config::Verbosity::normal;
  progress_.emplace(speaks ? Progress::detect() : Progress::Style::silent,
                    static_cast<int>(plan_.points.size()), planned_times(), deadline());
  if (supervisor != nullptr) progress_->tell(&supervisor->board());
  turns_.emplace(plan_, config, site_.device, wanted_);
  return measure_points();
}

Outcome Launch::measure_points() {
  while (turned_to_next()) {
    const units::Seconds began = elapsed();
    results::PointData data = measure_point(*current_);
    const bool failed = data.status == results::PointStatus::failed;
    turns_->done(*current_, failed ? std::nullopt : std::optional{elapsed() - began});
    all_ok_ = all_ok_ && !failed;
    if (!data.rows.empty()) measured_.points.push_back(std::move(data));
  }
  leave_out();
  progress_->finish();
  on_root(*setting_.world, [&] { finish(); });
  const bool is_moved = file_ && !file_->moved().empty();  // known on rank 0
  const bool is_there = setting_.world->broadcast(std::int64_t{is_moved ? 0 : 1}) == 1;
  return {.exit_code = all_ok_ && is_there ? base::ExitCode::done : base::ExitCode::failed};
}

/// While it is held nobody ends the process, or has last words on the point under way.
std::unique_lock<std::timed_mutex> Launch::hold_file() const {
  Supervisor* const supervisor = setting_.services.supervisor;
  return supervisor != nullptr ? std::unique_lock{supervisor->file_mutex()}
                               : std::unique_lock<std::timed_mutex>{};
}

/// Returns what is in the file then. Where no memory is left for that, the point has failed.
results::PointData Launch::commit(results::PointData data) {
  const auto lock = hold_file();
  try {
    file_->commit(data);
  } catch (const std::bad_alloc& error) {
    const std::string why = problem_of(error);
    data = as_failed(data.index, why);
    file_->commit(data);
  }
  last_in_file_ = data.index;
  if (Supervisor* const supervisor = setting_.services.supervisor) {
    supervisor->set_file(file_->path());
  }
  return data;
}

bool Launch::turned_to_next() {
  const std::optional<Turn> next = agreed_next();
  const auto lock = hold_file();
  current_ = next;
  return current_.has_value();
}

units::Seconds Launch::elapsed() const { return units::to_seconds(comm::now() - setting_.begin); }

std::optional<units::Nanoseconds> Launch::deadline() const {
  if (!setting_.config.budget) return std::nullopt;
  return setting_.begin + units::to_nanoseconds(*setting_.config.budget);
}

std::map<int, units::Seconds> Launch::planned_times() const {
  std::map<int, units::Seconds> times;
  for (const auto& [index, loop] : expected_loops(plan_, setting_.config, site_.device)) {
    if (!wanted_.contains(index)) continue;
    const PlannedPoint& point = plan_.points[static_cast<std::size_t>(index)];
    times[index] = total(estimate(point, setting_.config, site_.device), loop);
  }
  return times;
}

bool Launch::opened() {
  const bool is_new = setting_.config.resume.empty();
  on_root(*setting_.world, [&] {
    results::check_output(path_, is_new ? setting_.config.if_exists : config::IfExists::overwrite);
  });
  results::PreflightData looked = preflight({.config = setting_.config,
                                             .executor = &setting_.executor,
                                             .device_reason = setting_.device_reason,
                                             .facts = setting_.facts},
                                            *setting_.world);
  require_no_stop(looked, *setting_.world);
  const std::vector<RankSoftware> software =
      gather_software(*setting_.world, setting_.executor.describe());
  bool is_open = true;
  on_root(*setting_.world, [&] {
    header_ =
        make_header(setting_.config, site_, setting_.executor.describe(), setting_.facts, software);
    header_.preflight = std::move(looked);
    rank_facts_ = header_.rank_facts;
    if (is_new) {
      create();
    } else {
      is_open = reopen();
    }
    if (is_open) warn_of_time_limit();
  });
  return setting_.world->broadcast(std::int64_t{is_open ? 1 : 0}) == 1;
}

void Launch::create() {
  add_idle_injections();
  measured_ = header_;
  file_.emplace(results::RunWriter{path_, header_, setting_.config.if_exists}, path_, header_,
                fallback_of(setting_.config));
}

/// Whether the run that is gone on with lacks anything. Its header takes the place of this
/// launch's; a warning says which points are whose.
bool Launch::reopen() {
  const std::string file = path_.string();
  require_no_differences(file, differences(*earlier_, header_));
  require_no_differences(file, differences(*earlier_, plan_));
  wanted_ = missing_points(*earlier_, plan_);
  if (wanted_.empty() && earlier_->complete) {
    if (setting_.config.verbosity == config::Verbosity::normal) {
      setting_.services.print(fmt::format(
          "{} is complete: it has all of its {} points, and nothing is left to measure\n", file,
          plan_.points.size()));
    }
    return false;
  }
  if (!wanted_.empty()) {
    earlier_->warnings.push_back(resumption_warning(*earlier_, header_, wanted_));
    for (const preflight::CheckResult& result : header_.preflight->results) {
      // The file's own preflight is that of its first launch.
      if (result.allowed) earlier_->warnings.push_back("resumed with " + to_sentence(result));
    }
  }
  file_.emplace(results::RunWriter::resume(path_, *earlier_, wanted_), path_, *earlier_,
                fallback_of(setting_.config));
  header_ = *std::exchange(earlier_, std::nullopt);
  std::vector<results::PointData> points = std::move(header_.points);
  header_.points.clear();
  measured_ = header_;
  std::erase_if(points, [&](const results::PointData& point) {
    return point.rows.empty() || wanted_.contains(point.index);
  });
  measured_.points = std::move(points);
  return true;
}

/// The same on every rank; rank 0 has the clock and knows what is wanted.
std::optional<Turn> Launch::agreed_next() {
  const comm::Communicator& world = *setting_.world;
  constexpr std::int64_t none = -1;
  const Supervisor* const supervisor = setting_.services.supervisor;
  const bool shall_end = supervisor != nullptr && supervisor->shall_end_soon();
  ends_soon_ = world.all_max(shall_end ? 1.0 : 0.0) > 0;
  const bool chooses = world.rank() == 0 && !ends_soon_;
  const std::optional<Turn> next = chooses ? turns_->next(elapsed()) : std::nullopt;
  const std::int64_t index = world.broadcast(next ? std::int64_t{next->index} : none);
  if (index == none) return std::nullopt;
  const auto agreed = [&](units::Seconds time) {
    return units::to_seconds(
        units::Nanoseconds{world.broadcast(units::to_nanoseconds(time).value())});
  };
  const Turn turn = next.value_or(Turn{});
  return Turn{
      .index = static_cast<int>(index), .loop = agreed(turn.loop), .most = agreed(turn.most)};
}

PointContext Launch::context(const Turn& turn) {
  const config::RunConfig& config = setting_.config;
  const Services& services = setting_.services;
  return {.config = config,
          .site = site_,
          .facts = setting_.facts,
          .world = *setting_.world,
          .executor = setting_.executor,
          .effort = {.precision = config.precision,
                     .max_time = turn.loop,
                     .overtime = turn.most / turn.loop,
                     .trace_steps = config.trace_steps,
                     .half_width = services.half_width,
                     .nominal_confidence = services.nominal_confidence,
                     .last_change = services.last_change},
          .progress = *progress_,
          .rank_facts = rank_facts_};
}

/// When it returns, the point is in the file.
results::PointData Launch::measure_point(const Turn& turn) {
  const PlannedPoint& point = plan_.points[static_cast<std::size_t>(turn.index)];
  progress_->begin_point(point.index, point_title(point));
  Supervisor* const supervisor = setting_.services.supervisor;
  const std::uint64_t life = supervisor != nullptr ? supervisor->begin_point(way_on()) : 0;
  results::PointData data = run_point(point, context(turn));
  if (supervisor != nullptr) supervisor->end_point(life);
  return put_down(std::move(data));
}

/// Collective. Returns what is in the file, on rank 0.
results::PointData Launch::put_down(results::PointData data) {
  if (Board* const board = progress_->board()) board->doing("writing the run file");
  on_root(*setting_.world, [&] { data = commit(std::move(data)); });
  progress_->end_point(outcome_text(data));
  return data;
}

/// Puts down the points for which there was no time.
void Launch::leave_out() {
  on_root(*setting_.world, [&] {
    if (ends_soon_ && !turns_->waiting().empty()) {
      header_.warnings.push_back(
          fmt::format("asked to end (SIGUSR1) with {} of {} points left; continue with: isoscale "
                      "run --resume {}",
                      turns_->waiting().size(), plan_.points.size(), file_->path().string()));
      base::warn(header_.warnings.back());
    }
    for (const int index : turns_->waiting()) {
      const PlannedPoint& point = plan_.points[static_cast<std::size_t>(index)];
      progress_->begin_point(index, point_title(point));
      progress_->end_point(
          outcome_text(commit(left_out(point, ends_soon_ ? signal_reason : budget_reason))));
    }
  });
}

void Launch::finish() {
  if (const auto shortest = turns_->shortest()) {
    header_.warnings.push_back(fmt::format(
        "--budget {} gave {} less time than --max-time {}, down to {}",
        units::format(*setting_.config.budget), base::counted(turns_->shortened(), "point"),
        units::format(setting_.config.max_time), units::format(*shortest)));
  }
  if (setting_.config.budget) {
    if (const auto warning = no_curve_warning(plan_, turns_->waiting(), *setting_.config.budget)) {
      header_.warnings.push_back(*warning);
      base::warn(*warning);
    }
  }
  if (!measured_.points.empty()) {
    std::ranges::sort(measured_.points, {}, &results::PointData::index);
    header_.calibration = setting_.services.calibrate(measured_);
  }
  header_.ended = base::utc_now();
  header_.complete = true;
  file_->finish(header_);
  if (setting_.config.verbosity != config::Verbosity::normal) return;
  setting_.services.print(fmt::format("wrote {}\n", file_->path().string()));
  if (setting_.services.show_file) setting_.services.show_file(file_->path());
}

void Launch::warn_of_time_limit() const {
  units::Seconds expected{0};
  for (const int index : wanted_) {
    const PlannedPoint& point = plan_.points[static_cast<std::size_t>(index)];
    const PointTime time = estimate(point, setting_.config, site_.device);
    expected += total(time, time.most);
  }
  if (setting_.config.budget) expected = std::min(expected, *setting_.config.budget);
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const auto warning = machine::time_limit_warning(
      machine::time_limit(machine::process_environment(), now), expected);
  if (warning) base::warn(*warning);
}

/// What was asked for and will not happen must not pass for what happened.
void Launch::add_idle_injections() {
  for (const std::string& text : idle_injections(setting_.config.injections, plan_)) {
    header_.warnings.push_back(fmt::format("--inject {} touches no point of this run", text));
    base::warn(header_.warnings.back());
  }
}

}  // namespace isoscale::runner
