// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/point_details.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis::page {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kinds = 4;

/// An entry of the series of steps: all steps of one kind in a window of consecutive steps.
struct Entry {
  std::size_t first = 0;
  StepKind kind{};
  std::optional<double> time{};
};

std::vector<Entry> entries(const results::PointData& point, std::size_t every) {
  std::vector<Entry> result;
  const std::size_t steps = point.step_times.size();
  for (std::size_t begin = 0; begin < steps; begin += every) {
    std::array<std::optional<std::size_t>, kinds> place{};
    for (std::size_t step = begin; step < std::min(steps, begin + every); ++step) {
      const StepKind kind = kind_of_step(point, step);
      auto& at = place[static_cast<std::size_t>(kind)];
      if (!at) {
        at = result.size();
        result.push_back({.first = step, .kind = kind});
      }
      const std::optional<double> time = time_of_step(point, step);
      if (time) result[*at].time = std::max(result[*at].time.value_or(*time), *time);
    }
  }
  return result;
}

Json quantiles(const results::PointData& point) {
  constexpr int parts = 100;
  std::vector<double> times;
  for (std::size_t step = 0; step < point.step_times.size(); ++step) {
    if (kind_of_step(point, step) != StepKind::measured) continue;
    if (const auto time = time_of_step(point, step)) times.push_back(*time);
  }
  if (times.empty()) return {};
  std::ranges::sort(times);
  Json result = Json::array();
  for (int i = 0; i <= parts; ++i) {
    const double at = static_cast<double>(times.size() - 1) * i / parts;
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, times.size() - 1);
    const double share = at - static_cast<double>(below);
    result.push_back(drawn(times[below] + share * (times[above] - times[below])));
  }
  return result;
}

}  // namespace

Json drawn(const std::optional<double>& value, int digits) {
  constexpr double most_exact = 1e15;
  if (!value || !std::isfinite(*value)) return {};
  // Rounds by printing and parsing, since JSON prints the double that is nearest to a short decimal
  // number with just the digits of that number.
  const std::string text = fmt::format("{:.{}e}", *value, digits - 1);
  const double rounded = base::number_in<double>(text).value_or(*value);
  if (rounded == std::trunc(rounded) && std::abs(rounded) < most_exact) {
    return static_cast<std::int64_t>(rounded);  // "2", not "2.0"
  }
  return rounded;
}

std::string host_of(std::span<const results::RankFacts> facts, const results::PointData& point,
                    int rank) {
  const results::RankFacts* const of_rank = facts_of(facts, point, rank);
  return of_rank != nullptr ? of_rank->host : "";
}

StepKind kind_of_step(const results::PointData& point, std::size_t step) {
  const auto is_set = [step](const std::vector<std::uint8_t>& flags) {
    return step < flags.size() && flags[step] != 0;
  };
  if (point.warm_up_steps > 0 && step < static_cast<std::size_t>(point.warm_up_steps)) {
    return StepKind::warm_up;
  }
  if (is_set(point.dropped)) return StepKind::dropped;
  return is_set(point.traced) ? StepKind::traced : StepKind::measured;
}

std::optional<double> time_of_step(const results::PointData& point, std::size_t step) {
  const std::vector<double>& of_rank = point.step_times[step];
  const bool is_known = !of_rank.empty() && std::ranges::all_of(of_rank, [](double time) {
    return std::isfinite(time) && time > 0;
  });
  if (!is_known) return std::nullopt;
  return *std::ranges::max_element(of_rank);
}

Json step_series(const results::PointData& point, std::size_t most) {
  const std::size_t steps = point.step_times.size();
  most = std::max(most, kinds);
  std::size_t every = std::max<std::size_t>(1, (steps + most - 1) / most);
  std::vector<Entry> shown = entries(point, every);
  while (every < steps && shown.size() > most) shown = entries(point, every *= 2);
  Json first = Json::array(), time = Json::array(), kind = Json::array();
  for (const Entry& entry : shown) {
    first.push_back(entry.first);
    time.push_back(drawn(entry.time));
    kind.push_back(static_cast<int>(entry.kind));
  }
  return {{"first", first},
          {"time", time},
          {"kind", kind},
          {"every", every},
          {"quantiles", quantiles(point)}};
}

std::vector<DetailedPoint> detailed_points(const merge::Report& report) {
  std::vector<DetailedPoint> points;
  const auto add = [&](const RunReport& run, const PointReport& point) {
    if (point.data->step_times.empty() || point.data->ranks <= 0) return;
    points.push_back({.run = static_cast<std::size_t>(&run - report.runs.data()),
                      .report = &run,
                      .point = &point});
  };
  if (report.runs.size() == 1) {
    for (const Curve& curve : report.runs.front().curves) {
      for (const PointReport& point : curve.points) add(report.runs.front(), point);
    }
    return points;
  }
  for (const merge::JoinedCurve& joined : report.joined.curves) {
    for (std::size_t i = 0; i < joined.launches.size(); ++i) {
      for (const merge::LaunchPoint& at : joined.launches[i]) {
        if (at.point->data == joined.curve.points[i].data) add(*at.run, *at.point);
      }
    }
  }
  return points;
}

DetailLimits limits_within(const results::PointData& point, std::size_t bytes) {
  const std::size_t eighth = bytes / 8;
  // The estimated bytes of one step, span, row, cell, line and sample in the JSON.
  constexpr std::size_t step = 25, span = 50, row = 128, cell = 8, line = 6000, sample = 40;
  constexpr std::size_t spans_of_lane = 125;
  const DetailLimits most;
  DetailLimits limits;
  limits.steps = std::clamp<std::size_t>(eighth / step, 100, most.steps);
  limits.spans = std::clamp<std::size_t>(3 * eighth / span, 250, most.spans);
  limits.lanes = std::clamp<std::size_t>(limits.spans / spans_of_lane, 2, most.lanes);
  limits.rows = std::clamp<std::size_t>(eighth / row, 64, most.rows);
  const std::size_t rows =
      std::clamp<std::size_t>(static_cast<std::size_t>(point.ranks), 1, limits.rows);
  limits.columns = std::clamp<std::size_t>(eighth / rows / cell, 16, most.columns);
  limits.devices = std::clamp<std::size_t>(2 * eighth / line, 2, most.devices);
  const std::size_t lines = std::max<std::size_t>(1, count_device_lines(point, limits.devices));
  limits.samples = std::clamp<std::size_t>(2 * eighth / lines / sample, 16, most.samples);
  return limits;
}

Json point_details(const DetailedPoint& at, const DetailLimits& limits) {
  const results::PointData& data = *at.point->data;
  const std::span<const results::RankFacts> facts = at.report->data->rank_facts;
  return {{"run", at.run},
          {"point", data.index},
          {"ranks", data.ranks},
          {"steps", step_series(data, limits.steps)},
          {"rank_map", rank_map(facts, *at.point, limits)},
          {"timeline", lanes(facts, *at.point, limits)},
          {"devices", device_lines(facts, data, limits)}};
}

void note_shown(const Shown& count, std::string_view sentence, PageNotes& notes) {
  if (count.shown < count.all) {
    notes.push_back(fmt::format("{} of {} {}", count.shown, count.all, sentence));
  }
}

}  // namespace isoscale::analysis::page
