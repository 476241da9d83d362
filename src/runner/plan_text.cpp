// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/text.hpp"
#include "runner/budget.hpp"
#include "runner/estimate.hpp"
#include "runner/plan.hpp"
#include "runner/speeds.hpp"
#include "runner/step_loop.hpp"
#include "units/text.hpp"
#include "workloads/hybrid/hybrid.hpp"

namespace isoscale::runner {
namespace {

constexpr std::string_view row =
    "{:>5}  {:<11} {:<10} {:>5} {:>5} {:<16} {:>9} {:>9} {:>12} {:>11}  {}\n";

/// "dp 1.20 MiB, tp 3.00 MiB"; "nothing" when nothing is sent.
std::string traffic_text(const PlannedPoint& point) {
  std::vector<std::string> texts;
  for (const AxesTraffic& traffic : point.sent_by_axes) {
    if (traffic.sent == units::Bytes{0}) continue;
    texts.push_back(
        fmt::format("{} {}", mesh::to_string(traffic.axes), units::format(traffic.sent)));
  }
  return texts.empty() ? "nothing" : fmt::format("{}", fmt::join(texts, ", "));
}

/// Of a point that is not measured: the columns up to where it says why.
std::string left_columns(const PlannedPoint& point) {
  return fmt::format("{:>5}  {:<11} {:<10} {:>5} ", point.index + 1, point.workload->name,
                     uses_model(point) ? point.request.model.name : "-", point.ranks);
}

std::string point_line(const PlannedPoint& point, const PointTime& time, units::Seconds loop) {
  std::string sent = traffic_text(point);
  if (!point.reach.empty()) sent += fmt::format(" ({})", point.reach);
  if (point.host_memory_per_rank > units::Bytes{0}) {
    sent +=
        fmt::format("; {} of its memory on the host", units::format(point.host_memory_per_rank));
  }
  return fmt::format(row, point.index + 1, point.workload->name,
                     uses_model(point) ? point.request.model.name : "-", point.ranks,
                     point.nodes ? fmt::format("{}", *point.nodes) : "?",
                     mesh::to_string(point.request.mesh), units::format(loop),
                     units::format(total(time, loop)), units::format(*point.memory_per_rank),
                     units::format(units::Flops{*point.flop_per_step}), sent);
}

/// Describes a point that does not fit into memory; all columns but the times are filled in.
std::string misfit_line(const PlannedPoint& point) {
  return fmt::format(
      row, point.index + 1, point.workload->name,
      uses_model(point) ? point.request.model.name : "-", point.ranks,
      point.nodes ? fmt::format("{}", *point.nodes) : "?", mesh::to_string(point.request.mesh), "-",
      "-", units::format(*point.memory_per_rank), units::format(units::Flops{*point.flop_per_step}),
      fmt::format("does not fit: {}", point.misfit));
}

/// "" where no point is dealt out by speed.
std::string partition_text(const Plan& plan) {
  const bool any = std::ranges::any_of(plan.points, [](const PlannedPoint& point) {
    return point.skip_reason.empty() && deals_by_speed(point.request);
  });
  if (!any) return "";
  return "partition=proportional is planned as equal parts: speeds are measured just before a "
         "point.\n";
}

std::string injection_text(const config::Injection& injection, const Plan& plan) {
  std::vector<int> touched;
  for (const PlannedPoint& point : plan.points) {
    const bool is_put_in =
        std::ranges::find(point.injections, injection.text) != point.injections.end();
    if (is_put_in && point.skip_reason.empty()) touched.push_back(point.index + 1);
  }
  if (touched.empty()) return fmt::format("{} touches no point.\n", injection.text);
  return fmt::format("{} is injected into point {}.\n", injection.text, fmt::join(touched, ", "));
}

std::string budget_text(units::Seconds budget, std::size_t fitting, std::size_t left_out) {
  return fmt::format(
      "{} of {} fit into --budget {} by these estimates, with loops no longer than in the table; a "
      "run decides by how long its points really take.\n",
      fitting, base::counted(fitting + left_out, "point"), units::format(budget));
}

}  // namespace

std::string describe(const Plan& plan, const config::RunConfig& config, std::string_view device) {
  std::string text =
      fmt::format(row, "point", "workload", "model", "ranks", "nodes", "mesh", "loop", "time",
                  "memory/rank", "FLOP/step", "sent/step by axis, and how far the axis reaches");
  const std::map<int, units::Seconds> loops = expected_loops(plan, config, device);
  units::Seconds all{0}, to_measure{0};
  std::size_t fitting = 0, left_out = 0;
  for (const PlannedPoint& point : plan.points) {
    const auto loop = loops.find(point.index);
    if (!point.misfit.empty()) {
      text += misfit_line(point);
    } else if (!point.skip_reason.empty()) {
      text += fmt::format("{}skipped: {}\n", left_columns(point), point.skip_reason);
    } else if (loop == loops.end()) {
      ++left_out;
      text += fmt::format("{}left out: does not fit into the budget\n", left_columns(point));
    } else {
      ++fitting;
      const PointTime time = estimate(point, config, device);
      to_measure += time.stretch * loop->second + time.after;
      all += total(time, loop->second);
      text += point_line(point, time, loop->second);
      const std::string note = workloads::hybrid::expert_note(point.request);
      if (!note.empty()) text += fmt::format("{:>5}  {}\n", "", note);
    }
  }
  for (const PlannedPoint& point : plan.points) {
    if (!point.misfit.empty() && !point.skip_reason.empty()) {
      text += fmt::format("Point {} is skipped: {}.\n", point.index + 1, point.skip_reason);
    }
    if (!loops.contains(point.index)) continue;
    for (const std::string& note : point.notes) {
      text += fmt::format("Point {}: {}.\n", point.index + 1, note);
    }
  }
  const std::string of_budget =
      config.budget && fitting + left_out > 0 ? budget_text(*config.budget, fitting, left_out) : "";
  if (fitting == 0) return text + "Nothing would run: no point fits.\n" + of_budget;
  text += fmt::format(
      "About {} in all: {} to measure, more where steps scatter by more than {}, and {} for set-up "
      "and verification, which is a guess. A point's loop aims at {}; it lasts up to {:g} times as "
      "long where fewer than {} steps count.\n",
      units::format(all), units::format(to_measure), units::format_percent(assumed_scatter),
      units::format(all - to_measure), units::format(config.max_time), longest_overtime,
      least_counted);
  text += partition_text(plan);
  text += of_budget;
  for (const config::Injection& injection : config.injections) {
    text += injection_text(injection, plan);
  }
  return text;
}

}  // namespace isoscale::runner
