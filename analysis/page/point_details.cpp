// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/point_details.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "analysis/devices/usable_series.hpp"
#include "analysis/page/device_lines.hpp"
#include "analysis/page/lanes.hpp"
#include "analysis/page/rank_map.hpp"
#include "analysis/page/step_series.hpp"
#include "base/text.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

/// What was thinned out, over all points.
struct Thinned {
  std::size_t series = 0;                             ///< of steps
  std::size_t merged = 0, spans = 0, lanes = 0;       ///< ops put together, left out; ranks
  std::size_t maps = 0, cells = 0;                    ///< rank maps with ranks, and steps, together
  std::size_t lines = 0, averaged = 0, counters = 0;  ///< of devices
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
