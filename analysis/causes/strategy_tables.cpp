// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/causes/strategy_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "analysis/causes/point_tables.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

constexpr int most_replicas = 12;  ///< rows of a table

/// Whether a point was asked for something other than the option's default.
bool asks_for(const PointReport& point, const char* key, std::string_view usual) {
  const auto option = point.data->options.find(key);
  return option != point.data->options.end() && option->second != usual;
}

/// How busy each replica is where they were given different shares of the batch.
std::optional<TitledTable> replica_table(const Curve& curve) {
  const Points points = points_with(curve, [](const PointReport& point) {
    return point.breakdown.mean && point.data->mesh.dp > 1 && asks_for(point, "partition", "equal");
  });
  if (points.empty()) return std::nullopt;
  TitledTable result = by_ranks("utilisation of replicas, compute over step", points);
  int most = 0;
  for (const PointReport* const point : points) most = std::max(most, point->data->mesh.dp);
  const auto cell = [](const PointReport& point, int replica) {
    double compute = 0, step = 0;
    for (std::size_t i = 0; i < point.breakdown.ranks.size(); ++i) {
      const int rank = point.breakdown.ranks[i];
      if (mesh::coordinates(point.data->mesh, rank).dp != replica) continue;
      compute += point.breakdown.of_rank[i].compute;
      step += point.breakdown.of_rank[i].step;
    }
    return step > 0 ? percent(compute / step) : std::string{undefined};
  };
  for (int replica = 0; replica < std::min(most, most_replicas); ++replica) {
    Row row{.cells = {fmt::format("replica {}", replica)}, .tail = ""};
    for (const PointReport* const point : points) row.cells.push_back(cell(*point, replica));
    result.rows.push_back(row);
  }
  return result;
}

/// What the bubble is beside what it should be, and how long a message takes.
std::optional<TitledTable> pipeline_table(const Curve& curve) {
  const Points points =
      points_with(curve, [](const PointReport& point) { return point.pipeline.has_value(); });
  if (points.empty()) return std::nullopt;
  TitledTable result = by_ranks("pipeline, share of the traced step", points);
  const auto row = [&](const char* name, const auto& cell) {
    Row cells{.cells = {name}, .tail = ""};
    for (const PointReport* const point : points) cells.cells.push_back(cell(*point));
    result.rows.push_back(cells);
  };
  const auto share = [](const std::optional<double>& part) {
    return part ? percent(*part) : std::string{undefined};
  };
  const auto of_step = [&](const PointReport& at, const std::optional<double>& seconds) {
    const bool known = seconds && at.breakdown.mean && at.breakdown.mean->step > 0;
    return known ? percent(*seconds / at.breakdown.mean->step) : std::string{undefined};
  };
  const auto time = [](const PointReport& at, double HandOverTimes::*part) {
    const auto& times = at.pipeline->hand_over;
    return times ? units::format(units::Seconds{(*times).*part}) : std::string{undefined};
  };
  row("bubble, measured", [&](const PointReport& at) {
    const bool known = at.breakdown.mean && at.breakdown.bubble_known;
    return of_step(at, known ? std::optional{at.breakdown.mean->bubble} : std::nullopt);
  });
  row("bubble of the schedule, equal ranks",
      [&](const PointReport& at) { return of_step(at, at.breakdown.schedule_bubble); });
  row("bubble by the schedule's formula",
      [&](const PointReport& at) { return share(at.pipeline->formula_bubble); });
  row("hand-over of a microbatch, median",
      [&](const PointReport& at) { return time(at, &HandOverTimes::median); });
  row("hand-over, 90th percentile",
      [&](const PointReport& at) { return time(at, &HandOverTimes::p90); });
  return result;
}

/// How much of the copies from and to host memory runs beside the computation.
std::optional<TitledTable> copies_table(const Curve& curve) {
  const Points points = points_with(curve, [](const PointReport& point) {
    return point.breakdown.mean && asks_for(point, "offload", "none");
  });
  if (points.empty()) return std::nullopt;
  TitledTable result = by_ranks("copies of offloaded states, share of the traced step", points);
  const auto row = [&](const char* name, double Breakdown::*part) {
    Row cells{.cells = {name}, .tail = ""};
    for (const PointReport* const point : points) {
      const Breakdown& mean = *point->breakdown.mean;
      cells.cells.push_back(mean.step > 0 ? percent(mean.*part / mean.step)
                                          : std::string{undefined});
    }
    result.rows.push_back(cells);
  };
  row("hidden under computation", &Breakdown::hidden_copies);
  row("exposed", &Breakdown::copies);
  return result;
}

}  // namespace

std::vector<TitledTable> strategy_tables(const Curve& curve) {
  std::vector<TitledTable> tables;
  if (auto table = replica_table(curve)) tables.push_back(*std::move(table));
  if (auto table = copies_table(curve)) tables.push_back(*std::move(table));
  if (auto table = pipeline_table(curve)) tables.push_back(*std::move(table));
  return tables;
}

}  // namespace isoscale::analysis
