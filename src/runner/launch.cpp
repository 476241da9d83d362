// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "results/output.hpp"
#include "runner/estimate.hpp"
#include "runner/faults.hpp"
#include "runner/header.hpp"
#include "runner/on_root.hpp"
#include "runner/preflight.hpp"
#include "runner/resume.hpp"
#include "system/time_limit.hpp"
#include "units/text.hpp"

namespace isoscale::runner {
namespace {

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

/// A point for which there was no time.
results::PointData left_out(const PlannedPoint& point) {
  results::PointData data = describe_point(point);  // as planned: its mesh is known
  data.status = results::PointStatus::skipped;
  data.reason = budget_reason;
  return data;
}

}  // namespace

Launch::Launch(const Setting& setting, std::optional<results::RunData> earlier)
    : setting_(setting),
      site_(make_site(setting.world, setting.executor.describe(), setting.facts)),
      plan_(make_plan(setting.config, site_)),
      path_(output_path(setting.config, setting.facts.front().host)),
      earlier_(std::move(earlier)) {
  for (const PlannedPoint& point : plan_.points) wanted_.insert(point.index);
}

Outcome Launch::measure() {
  if (!opened()) return {};
  const config::RunConfig& config = setting_.config;
  const bool speaks = setting_.world.rank() == 0 && config.verbosity == config::Verbosity::normal;
  Progress progress{speaks ? Progress::detect() : Progress::Style::silent,
                    static_cast<int>(plan_.points.size()), static_cast<int>(wanted_.size()),
                    deadline()};
  Turns turns{plan_, config, site_.device, wanted_};
  bool all_ok = true;
  for (auto turn = agreed_next(turns); turn; turn = agreed_next(turns)) {
    const units::Seconds began = elapsed();
    results::PointData data = measure_point(*turn, progress);
    const bool failed = data.status == results::PointStatus::failed;
    turns.done(*turn, failed ? std::nullopt : std::optional{elapsed() - began});
    all_ok = all_ok && !failed;
    if (!data.rows.empty()) measured_.points.push_back(std::move(data));
  }
  leave_out(turns, progress);
  progress.finish();
  on_root(setting_.world, [&] { finish(turns); });
  return {.exit_code = all_ok ? base::ExitCode::done : base::ExitCode::failed, .file = path_};
}

units::Seconds Launch::elapsed() const { return units::to_seconds(comm::now() - setting_.begin); }

std::optional<units::Nanoseconds> Launch::deadline() const {
  if (!setting_.config.budget) return std::nullopt;
  return setting_.begin + units::to_nanoseconds(*setting_.config.budget);
}

bool Launch::opened() {
  const bool is_new = setting_.config.resume.empty();
  on_root(setting_.world, [&] {
    results::check_output(path_, is_new ? setting_.config.if_exists : config::IfExists::overwrite);
  });
  results::PreflightData looked = preflight({.config = setting_.config,
                                             .executor = &setting_.executor,
                                             .device_reason = setting_.device_reason,
                                             .facts = setting_.facts},
                                            setting_.world);
  require_no_stop(looked, setting_.world);
  const std::vector<RankSoftware> software =
      gather_software(setting_.world, setting_.executor.describe());
  bool is_open = true;
  on_root(setting_.world, [&] {
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
  return setting_.world.broadcast(std::int64_t{is_open ? 1 : 0}) == 1;
}

void Launch::create() {
  add_idle_injections();
  measured_ = header_;
  writer_ = std::make_unique<results::RunWriter>(path_, header_, setting_.config.if_exists);
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
    for (const system::CheckResult& result : header_.preflight->results) {
      // The file's own preflight is that of its first launch.
      if (result.allowed) earlier_->warnings.push_back("resumed with " + to_sentence(result));
    }
  }
  writer_ =
      std::make_unique<results::RunWriter>(results::RunWriter::resume(path_, *earlier_, wanted_));
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
std::optional<Turn> Launch::agreed_next(const Turns& turns) const {
  const comm::Communicator& world = setting_.world;
  constexpr std::int64_t none = -1;
  const std::optional<Turn> next = world.rank() == 0 ? turns.next(elapsed()) : std::nullopt;
  const std::int64_t index = world.broadcast(next ? std::int64_t{next->index} : none);
  if (index == none) return std::nullopt;
  const units::Nanoseconds loop{
      world.broadcast(next ? units::to_nanoseconds(next->loop).value() : std::int64_t{0})};
  return Turn{.index = static_cast<int>(index), .loop = units::to_seconds(loop)};
}

PointContext Launch::context(const Turn& turn, Progress& progress) const {
  const config::RunConfig& config = setting_.config;
  const Services& services = setting_.services;
  return {.config = config,
          .site = site_,
          .facts = setting_.facts,
          .world = setting_.world,
          .executor = setting_.executor,
          .effort = {.precision = config.precision,
                     .max_time = turn.loop,
                     .trace_steps = config.trace_steps,
                     .half_width = services.half_width,
                     .nominal_confidence = services.nominal_confidence,
                     .last_change = services.last_change},
          .progress = progress,
          .rank_facts = rank_facts_};
}

/// When it returns, the point is in the file.
results::PointData Launch::measure_point(const Turn& turn, Progress& progress) {
  const PlannedPoint& point = plan_.points[static_cast<std::size_t>(turn.index)];
  progress.begin_point(point.index, point_title(point));
  results::PointData data = run_point(point, context(turn, progress));
  on_root(setting_.world, [&] { writer_->commit(data); });
  progress.end_point(outcome_text(data));
  return data;
}

/// Puts down the points for which there was no time.
void Launch::leave_out(const Turns& turns, Progress& progress) {
  on_root(setting_.world, [&] {
    for (const int index : turns.waiting()) {
      const PlannedPoint& point = plan_.points[static_cast<std::size_t>(index)];
      progress.begin_point(index, point_title(point));
      const results::PointData data = left_out(point);
      writer_->commit(data);
      progress.end_point(outcome_text(data));
    }
  });
}

void Launch::finish(const Turns& turns) {
  if (const auto shortest = turns.shortest()) {
    header_.warnings.push_back(
        fmt::format("--budget {} gave {} point{} less time than --max-time {}, down to {}",
                    units::format(*setting_.config.budget), turns.shortened(),
                    turns.shortened() == 1 ? "" : "s", units::format(setting_.config.max_time),
                    units::format(*shortest)));
  }
  if (setting_.config.budget) {
    if (const auto warning = no_curve_warning(plan_, turns.waiting(), *setting_.config.budget)) {
      header_.warnings.push_back(*warning);
      base::warn(*warning);
    }
  }
  if (!measured_.points.empty()) {
    std::ranges::sort(measured_.points, {}, &results::PointData::index);
    header_.calibration = setting_.services.calibrate(measured_);
  }
  header_.ended = utc_now();
  header_.complete = true;
  writer_->finish(header_);
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
  const auto warning =
      system::time_limit_warning(system::time_limit(system::process_environment(), now), expected);
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
