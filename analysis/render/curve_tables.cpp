// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/curve_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <utility>

#include "analysis/breakdown/op_times.hpp"
#include "analysis/breakdown/pipeline_report.hpp"
#include "base/text.hpp"
#include "program/op.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

Points points_with(const Curve& curve, const std::function<bool(const PointReport&)>& has) {
  Points points;
  for (const PointReport& point : curve.points) {
    if (has(point)) points.push_back(&point);
  }
  return points;
}

/// Returns "1 rank", "8 ranks".
std::string ranks_heading(const PointReport& point) {
  return base::counted(point.data->ranks, "rank");
}

/// Returns an empty table: a column with the names of the rows, then a column for each point.
TitledTable by_ranks(std::string title, const Points& points) {
  TitledTable result{
      .title = std::move(title) + of_launches(points), .columns = {{"", Align::left}}, .rows = {}};
  for (const PointReport* const point : points) result.columns.push_back({ranks_heading(*point)});
  return result;
}

constexpr int most_replicas = 12;  ///< rows of the table

/// True if a point's option differs from the default.
bool asks_for(const PointReport& point, const char* key, std::string_view usual) {
  const auto option = point.data->options.find(key);
  return option != point.data->options.end() && option->second != usual;
}

/// Returns the utilisation of replicas that were given different shares of the batch.
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

/// Returns the bubble compared with its formula, and the time of a message.
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

/// Returns how much of the copies from and to host memory overlaps with computation.
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

constexpr std::size_t most_layers = 12, most_gemm_shapes = 12;  ///< rows of a table
constexpr std::string_view untraced_cause = "untraced";

/// Returns "2 ranks, 4 traced steps, launch 3".
std::string traced_heading(const PointReport& point) {
  return fmt::format("{}, {} traced step{}{}", ranks_heading(point), point.breakdown.steps,
                     point.breakdown.steps == 1 ? "" : "s", of_launches({&point}));
}

/// Returns the causes of all points. A cause that only some points have is at the same place in the
/// order as in those points.
std::vector<std::string> causes_of(const Points& points) {
  std::vector<std::string> causes;
  for (const PointReport* const point : points) {
    auto next = causes.begin();
    for (const LostTime& lost : point->causes.waterfall->lost) {
      const auto known = std::ranges::find(causes, lost.cause);
      next = known == causes.end() ? causes.insert(next, lost.cause) : known;
      ++next;
    }
  }
  return causes;
}

/// Returns the share of the measured step that this cause took: "0" if it took no time at all,
/// "0.0%" if its share rounds to that, and no number if the causes do not explain the loss.
std::string loss_cell(const Waterfall& waterfall, const std::string& cause) {
  if (!waterfall.explains && cause != untraced_cause) return std::string{undefined};
  const auto lost = std::ranges::find(waterfall.lost, cause, &LostTime::cause);
  if (lost == waterfall.lost.end()) return waterfall.missing.empty() ? "0" : std::string{undefined};
  return lost->seconds == 0 ? "0" : percent(lost->seconds / waterfall.measured);
}

/// True if no point lost or gained time by this cause, as for a bubble without a pipeline.
bool is_nothing(const Points& points, const std::string& cause) {
  return std::ranges::all_of(points, [&cause](const PointReport* point) {
    const auto& all = point->causes.waterfall->lost;
    const auto lost = std::ranges::find(all, cause, &LostTime::cause);
    return lost == all.end() || lost->seconds == 0;
  });
}

std::optional<TitledTable> waterfall_table(const Curve& curve) {
  const Points points = points_with(
      curve, [](const PointReport& point) { return point.causes.waterfall.has_value(); });
  if (points.empty()) return std::nullopt;
  TitledTable result = by_ranks("lost time, from ideal to measured, share of the step", points);
  const auto row = [&](const std::string& name, const auto& cell) {
    Row cells{.cells = {name}, .tail = ""};
    for (const PointReport* const point : points)
      cells.cells.push_back(cell(*point->causes.waterfall));
    result.rows.push_back(cells);
  };
  const auto time = [](double seconds) { return units::format(units::Seconds{seconds}); };
  row("ideal step", [&](const Waterfall& at) { return time(at.ideal); });
  std::vector<std::string> causes = causes_of(points);
  // The untraced part is not explained by any cause, so it comes before the causes.
  std::ranges::stable_partition(causes, [](const auto& at) { return at == untraced_cause; });
  for (const std::string& cause : causes) {
    if (is_nothing(points, cause)) continue;
    row("  " + cause, [&](const Waterfall& at) { return loss_cell(at, cause); });
  }
  row("  all lost", [](const Waterfall& at) { return percent(1 - at.ideal / at.measured); });
  row("measured step", [&](const Waterfall& at) { return time(at.measured); });
  return result;
}

std::optional<TitledTable> pop_table(const Curve& curve) {
  const Points points =
      points_with(curve, [](const PointReport& point) { return point.causes.pop.has_value(); });
  if (points.empty()) return std::nullopt;
  TitledTable result = by_ranks("efficiencies, each the product of those below it", points);
  const auto row = [&](const char* name, auto part) {
    Row cells{.cells = {name}, .tail = ""};
    for (const PointReport* const point : points) {
      cells.cells.push_back(percent((*point->causes.pop).*part));
    }
    result.rows.push_back(cells);
  };
  row("global", &Pop::global);
  row("├ parallel", &Pop::parallel);
  row("│ ├ load balance", &Pop::load_balance);
  row("│ └ communication", &Pop::communication);
  row("│   ├ serialisation", &Pop::serialisation);
  row("│   └ transfer", &Pop::transfer);
  row("└ computation scalability", &Pop::computation_scalability);
  row("  ├ work (FLOP)", &Pop::work_scalability);
  row("  └ speed (FLOP/s)", &Pop::speed_scalability);
  return result;
}

/// A table with a row for each place in the program: its share of the step, and its time by
/// category.
class PlaceTable {
 public:
  PlaceTable(std::string title, std::string place, const BreakdownResult& breakdown)
      : breakdown_(breakdown),
        table_{.title = std::move(title),
               .columns = {{std::move(place), Align::left}, {"step"}},
               .rows = {}} {
    for (const Category& category : categories()) {
      if (category.seconds != &Breakdown::other)
        table_.columns.push_back({std::string{category.name}});
    }
    table_.columns.push_back({"hidden"});
  }

  void add(std::string name, const Breakdown& parts) {
    Row row{.cells = {std::move(name), cell(parts.step)}, .tail = ""};
    for (const Category& category : categories()) {
      if (category.seconds != &Breakdown::other) row.cells.push_back(cell(parts.*category.seconds));
    }
    row.cells.push_back(cell(parts.hidden_communication));
    table_.rows.push_back(std::move(row));
  }
  void note(std::string text) { table_.rows.push_back({.cells = {std::move(text)}, .tail = ""}); }
  [[nodiscard]] TitledTable take() { return std::move(table_); }

 private:
  [[nodiscard]] std::string cell(double seconds) const {
    return seconds == 0 ? "0" : percent(seconds / breakdown_.mean->step);
  }

  const BreakdownResult& breakdown_;
  TitledTable table_;
};

TitledTable phase_table(const PointReport& point) {
  PlaceTable table{"by phase, " + traced_heading(point), "phase", point.breakdown};
  for (const auto& [phase, parts] : point.breakdown.by_phase) {
    table.add(std::string{program::name(phase)}, parts);
  }
  return table.take();
}

TitledTable axes_table(const PointReport& point) {
  PlaceTable table{"communication by mesh axis, " + traced_heading(point), "axis", point.breakdown};
  for (const auto& [axes, parts] : point.breakdown.by_axes) {
    table.add(mesh::to_string(axes), parts);
  }
  return table.take();
}

TitledTable layer_table(const PointReport& point) {
  PlaceTable table{"by layer, " + traced_heading(point), "layer", point.breakdown};
  std::size_t shown = 0;
  for (const auto& [layer, parts] : point.breakdown.by_layer) {
    if (shown++ == most_layers) {
      table.note(fmt::format("and {} more (--format json)",
                             point.breakdown.by_layer.size() - most_layers));
      break;
    }
    table.add(layer < 0 ? "none" : std::to_string(layer), parts);
  }
  return table.take();
}

/// Returns a table with a row for each shape: a rank's calls in a step and their total time.
std::optional<TitledTable> gemm_table(const PointReport& point) {
  const std::vector<GemmTime> times = gemm_times(*point.data);
  if (times.empty()) return std::nullopt;
  TitledTable table{
      .title = "GEMMs by shape, a rank's in a step, " + traced_heading(point),
      .columns = {{"m x n x k", Align::left}, {"calls"}, {"step"}, {"time of one"}, {"FLOP/s"}},
      .rows = {}};
  for (const GemmTime& at : times | std::views::take(most_gemm_shapes)) {
    table.rows.push_back(
        {.cells = {program::to_string(at.shape), fmt::format("{:.4g}", at.calls),
                   percent(at.seconds / point.breakdown.mean->step),
                   units::format(units::Seconds{at.seconds / at.calls}),
                   at.seconds > 0 ? units::format(units::FlopsPerSecond{at.flop / at.seconds})
                                  : ""},
         .tail = ""});
  }
  if (times.size() > most_gemm_shapes) {
    table.rows.push_back(
        {.cells = {fmt::format("and {} more (--format json)", times.size() - most_gemm_shapes)},
         .tail = ""});
  }
  return table;
}

}  // namespace

std::vector<TitledTable> strategy_tables(const Curve& curve) {
  std::vector<TitledTable> tables;
  if (auto table = replica_table(curve)) tables.push_back(*std::move(table));
  if (auto table = copies_table(curve)) tables.push_back(*std::move(table));
  if (auto table = pipeline_table(curve)) tables.push_back(*std::move(table));
  return tables;
}

Points traced_points(const Curve& curve) {
  return points_with(curve,
                     [](const PointReport& point) { return point.breakdown.mean.has_value(); });
}

std::string of_launches(const Points& points) {
  std::map<std::size_t, std::vector<int>> ranks_of;
  for (const PointReport* const point : points) {
    if (point->launch > 0) ranks_of[point->launch].push_back(point->data->ranks);
  }
  std::string text;
  for (const auto& [launch, ranks] : ranks_of) {
    text += fmt::format(", launch {}", launch);
    if (ranks_of.size() == 1) break;
    text +=
        fmt::format(" on {} rank{}", fmt::join(ranks, " and "), ranks == std::vector{1} ? "" : "s");
  }
  return text;
}

std::vector<TitledTable> cause_tables(const Curve& curve, const Sections& sections) {
  std::vector<TitledTable> tables;
  const auto add = [&](Section section, std::optional<TitledTable> table) {
    if (table && sections.has(section)) tables.push_back(*std::move(table));
  };
  add(Section::waterfall, waterfall_table(curve));
  add(Section::pop, pop_table(curve));
  for (TitledTable& table : strategy_tables(curve)) add(Section::strategies, std::move(table));
  const Points traced = traced_points(curve);
  if (traced.empty()) return tables;
  const PointReport& largest = *traced.back();
  add(Section::phases, phase_table(largest));
  if (!largest.breakdown.by_axes.empty()) add(Section::phases, axes_table(largest));
  if (sections.has(Section::phases)) add(Section::phases, gemm_table(largest));
  if (largest.breakdown.by_layer.size() > 1) add(Section::layers, layer_table(largest));
  return tables;
}

}  // namespace isoscale::analysis
