// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/point_details.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "analysis/devices/device_state.hpp"
#include "base/text.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

/// Rounds to this number of significant decimal digits, which JSON then prints.
double rounded(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value))));
  const int places = digits - 1 - exponent;
  // Dividing by a power of ten gives the double nearest to the decimal number. Multiplying by a
  // negative power does not, since such a power has no exact representation.
  const double power = std::pow(10.0, std::abs(places));
  if (!std::isfinite(power)) return value;
  return places >= 0 ? std::round(value * power) / power : std::round(value / power) * power;
}

constexpr std::size_t kinds = 4;

/// The steps of one kind among `every` consecutive ones.
struct Entry {
  std::size_t first = 0;
  StepKind kind{};
  std::optional<double> time{};
};

std::vector<Entry> entries(const results::PointData& point, std::size_t every) {
  std::vector<Entry> result;
  const std::size_t steps = point.step_times.size();
  for (std::size_t begin = 0; begin < steps; begin += every) {
    const auto of_window = static_cast<std::ptrdiff_t>(result.size());
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
    std::sort(result.begin() + of_window, result.end(),
              [](const Entry& a, const Entry& b) { return a.first < b.first; });
  }
  return result;
}

/// Returns the number of entries for this value of `every`.
std::size_t count_entries(const results::PointData& point, std::size_t every) {
  std::size_t count = 0;
  const std::size_t steps = point.step_times.size();
  for (std::size_t begin = 0; begin < steps; begin += every) {
    std::array<std::size_t, kinds> seen{};
    for (std::size_t step = begin; step < std::min(steps, begin + every); ++step) {
      seen[static_cast<std::size_t>(kind_of_step(point, step))] = 1;
    }
    for (const std::size_t one : seen) count += one;
  }
  return count;
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

/// Counts of what was thinned out or left out, over all points.
struct Thinned {
  std::size_t series = 0;                        ///< series of steps
  std::size_t merged = 0, spans = 0, lanes = 0;  ///< ops merged, ops left out; ranks left out
  std::size_t maps = 0, cells = 0;  ///< rank maps with merged ranks, and with merged steps
  std::size_t lines = 0, averaged = 0, counters = 0;  ///< of devices; counters are left out
};

Thinned thinned_of(const std::vector<DetailedPoint>& points, const Json& details,
                   const DetailLimits& limits) {
  Thinned all;
  for (const Json& at : details) {
    all.series += at["steps"]["every"] > 1 ? 1 : 0;
    const Json& map = at["rank_map"];
    all.maps += map["rank"].size() < at["ranks"].get<std::size_t>() ? 1 : 0;
    all.cells += map["cells"].is_object() && map["cells"]["every"] > 1 ? 1 : 0;
    if (at["timeline"].is_object()) {
      all.merged += at["timeline"]["merged"].get<std::size_t>();
      all.spans += at["timeline"]["spans_left_out"].get<std::size_t>();
      all.lanes += at["timeline"]["left_out"].get<std::size_t>();
    }
    for (const Json& line : at["devices"]) all.averaged += line["averaged"] > 1 ? 1 : 0;
  }
  for (const DetailedPoint& at : points) {
    all.lines += device_lines_left_out(*at.point->data, limits);
    all.counters += static_cast<std::size_t>(
        std::ranges::count_if(at.point->data->device_series, [](const auto& series) {
          return quantity_of(series.quantity).kind == QuantityKind::counter;
        }));
  }
  return all;
}

}  // namespace

Json drawn(double value, int digits) {
  constexpr double most_exact = 1e15;
  const double short_value = rounded(value, digits);
  if (!std::isfinite(short_value)) return {};
  if (short_value == std::trunc(short_value) && std::abs(short_value) < most_exact) {
    return static_cast<std::int64_t>(short_value);  // "2", not "2.0"
  }
  return short_value;
}

Json drawn(const std::optional<double>& value, int digits) {
  return value ? drawn(*value, digits) : Json{};
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
  while (every < steps && count_entries(point, every) > most) every *= 2;
  Json first = Json::array(), time = Json::array(), kind = Json::array();
  for (const Entry& entry : entries(point, every)) {
    first.push_back(entry.first);
    time.push_back(drawn(entry.time));
    kind.push_back(static_cast<int>(entry.kind));
  }
  return {{"first", first},
          {"time", time},
          {"kind", kind},
          {"every", every},
          {"quantiles", quantiles(point)},
          {"injections", point.injections}};
}

std::vector<DetailedPoint> detailed_points(const Report& report) {
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
  for (const JoinedCurve& joined : report.joined.curves) {
    for (std::size_t i = 0; i < joined.launches.size(); ++i) {
      for (const LaunchPoint& at : joined.launches[i]) {
        if (at.point->data == joined.curve.points[i].data) add(*at.run, *at.point);
      }
    }
  }
  return points;
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

void note_details(const std::vector<DetailedPoint>& points, const Json& details,
                  const DetailLimits& limits, PageNotes& notes) {
  const Thinned all = thinned_of(points, details, limits);
  const auto note = [&](std::size_t count, std::string sentence) {
    if (count > 0) notes.push_back(std::move(sentence));
  };
  note(all.series, fmt::format("step times of {} are drawn as at most {} entries each, every one "
                               "the longest of its steps",
                               base::counted(all.series, "point"), limits.steps));
  note(all.maps, fmt::format("rank maps of {} have more than {} ranks: those of a host are one row",
                             base::counted(all.maps, "point"), limits.rows));
  note(all.cells, fmt::format("rank maps of {} have at most {} columns, every one with what lies "
                              "furthest off in its steps",
                              base::counted(all.cells, "point"), limits.columns));
  note(all.merged, fmt::format("timelines: {} shorter than can be seen are drawn as part of "
                               "their neighbours",
                               base::counted(all.merged, "op")));
  note(all.spans,
       fmt::format("timelines: {} are left out", base::counted(all.spans, "short span")));
  note(all.lanes, fmt::format("timelines: {} have no lane; report --trace FILE.json writes all",
                              base::counted(all.lanes, "traced rank")));
  note(all.averaged, fmt::format("{} of devices are drawn as at most {} values each: means, with "
                                 "the least and most of the values averaged",
                                 base::counted(all.averaged, "line"), limits.samples));
  note(all.lines, fmt::format("{} of devices are left out: a quantity has at most {}, of those "
                              "that differ most",
                              base::counted(all.lines, "line"), limits.devices));
  note(all.counters, fmt::format("{} of counters (energy, bytes) are not drawn",
                                 base::counted(all.counters, "sampled line")));
}

}  // namespace isoscale::analysis
