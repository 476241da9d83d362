// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "runner/estimate.hpp"
#include "runner/plan.hpp"
#include "units/text.hpp"

namespace isoscale::runner {
namespace {

constexpr std::string_view row =
    "{:>5}  {:<11} {:<10} {:>5} {:>5} {:<16} {:>9} {:>12} {:>11}  {}\n";

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

std::string point_line(const PlannedPoint& point, const PointTime& time) {
  std::string sent = traffic_text(point);
  if (!point.reach.empty()) sent += fmt::format(" ({})", point.reach);
  return fmt::format(row, point.index + 1, point.workload->name,
                     uses_model(point) ? point.request.model.name : "-", point.ranks, point.nodes,
                     mesh::to_string(point.request.mesh), units::format(total(time, time.most)),
                     units::format(*point.memory_per_rank),
                     units::format(units::Flops{*point.flop_per_step}), sent);
}

std::string injection_text(const config::Injection& injection, const Plan& plan) {
  std::vector<int> touched;
  for (const PlannedPoint& point : plan.points) {
    const bool is_put_in =
        std::ranges::find(point.injections, injection.text) != point.injections.end();
    if (is_put_in && point.skip_reason.empty()) touched.push_back(point.index + 1);
  }
  if (touched.empty()) return fmt::format("{} touches no point.\n", injection.text);
  return fmt::format("{} is put into point {} on purpose.\n", injection.text,
                     fmt::join(touched, ", "));
}

}  // namespace

std::string describe(const Plan& plan, const config::RunConfig& config, std::string_view device) {
  std::string text =
      fmt::format(row, "point", "workload", "model", "ranks", "nodes", "mesh", "time",
                  "memory/rank", "FLOP/step", "sent/step by axis, and how far the axis reaches");
  units::Seconds loops{0};
  for (const PlannedPoint& point : plan.points) {
    if (!point.skip_reason.empty()) {
      text += fmt::format("{:>5}  {:<11} {:<10} {:>5} skipped: {}\n", point.index + 1,
                          point.workload->name, uses_model(point) ? point.request.model.name : "-",
                          point.ranks, point.skip_reason);
      continue;
    }
    const PointTime time = estimate(point, config, device);
    loops += time.stretch * time.most;
    text += point_line(point, time);
  }
  const units::Seconds all = total_time(plan, config, device);
  text += fmt::format(
      "About {} in all: {} to measure, less where points are precise earlier, and {} for set-up "
      "and "
      "verification, which is a guess. A point's loop stops after {}, but plays at least six steps "
      "that count, however long they take.\n",
      units::format(all), units::format(loops), units::format(all - loops),
      units::format(config.max_time));
  for (const config::Injection& injection : config.injections) {
    text += injection_text(injection, plan);
  }
  return text;
}

}  // namespace isoscale::runner
