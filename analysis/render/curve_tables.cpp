// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/curve_tables_and_remarks.hpp"

#include <fmt/ranges.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "analysis/breakdown/op_and_link_times.hpp"
#include "program/op.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::analysis::render {
namespace {

Points points_with(const Curve& curve, const std::function<bool(const PointReport&)>& has) {
  Points points;
  for (const PointReport& point : curve.points) {
    if (has(point)) points.push_back(&point);
  }
  return points;
}

/// A row of the table of by_ranks(): its name, and a function that gives its cell for a point.
using RankRow = std::pair<std::string, std::function<std::string(const PointReport&)>>;

/// Returns a table with one column for each point, headed by its rank count, and the rows `rows`;
/// it has no rows if there are no points.
DocumentTable by_ranks(const std::string& title, const Points& points,
                       const std::vector<RankRow>& rows) {
  DocumentTable table{.title = title + of_launches(points)};
  if (points.empty()) return table;
  for (const auto& [name, cell] : rows) {
    std::vector<Cell> cells{{"", name, Unit::text}};
    for (const PointReport* const at : points) {
      cells.push_back({base::counted(at->data->ranks, "rank"), cell(*at), Unit::share});
    }
    add_row(table, std::move(cells));
  }
  return table;
}

constexpr int most_replicas = 12;  ///< limit on the rows of replica_table()

/// True if the point has another value of this option than `usual`, the default.
bool asks_for(const PointReport& point, const char* key, std::string_view usual) {
  const std::string option = option_of(*point.data, key);
  return !option.empty() && option != usual;
}

/// Returns the share of the step in which a replica's ranks compute; absent if none was traced.
std::optional<double> utilisation(const PointReport& point, int replica) {
  double compute = 0, step = 0;
  for (std::size_t i = 0; i < point.breakdown.ranks.size(); ++i) {
    const int rank = point.breakdown.ranks[i];
    if (mesh::coordinates(point.data->mesh, rank).dp != replica) continue;
    compute += point.breakdown.of_rank[i].compute;
    step += point.breakdown.of_rank[i].step;
  }
  return step > 0 ? std::optional{compute / step} : std::nullopt;
}

/// Returns the table of the utilisation of replicas that were given different shares of the batch.
DocumentTable replica_table(const Curve& curve) {
  const Points points = points_with(curve, [](const PointReport& point) {
    return point.breakdown.mean && point.data->mesh.dp > 1 && asks_for(point, "partition", "equal");
  });
  int most = 0;
  for (const PointReport* const point : points) most = std::max(most, point->data->mesh.dp);
  std::vector<RankRow> rows;
  for (int replica = 0; replica < std::min(most, most_replicas); ++replica) {
    rows.emplace_back(fmt::format("replica {}", replica), [replica](const PointReport& point) {
      return percent(utilisation(point, replica));
    });
  }
  return by_ranks("utilisation of replicas, compute over step", points, rows);
}

/// Returns a time as a share of the point's traced step.
std::string of_step(const PointReport& at, const std::optional<double>& seconds) {
  const bool known = seconds && at.breakdown.mean && at.breakdown.mean->step > 0;
  return known ? percent(*seconds / at.breakdown.mean->step) : std::string{undefined};
}

/// Returns the table of the pipeline bubble compared with its formula, and of the time of a message
/// between stages.
DocumentTable pipeline_table(const Curve& curve) {
  const auto time = [](double breakdown::HandOverTimes::*part) {
    return [part](const PointReport& at) {
      const auto& times = at.pipeline->hand_over;
      return times ? units::format(units::Seconds{(*times).*part}) : std::string{undefined};
    };
  };
  return by_ranks(
      "pipeline, share of the traced step",
      points_with(curve, [](const PointReport& at) { return at.pipeline.has_value(); }),
      {{"bubble, measured",
        [](const PointReport& at) {
          const bool known = at.breakdown.mean && at.breakdown.bubble_known;
          return of_step(at, known ? std::optional{at.breakdown.mean->bubble} : std::nullopt);
        }},
       {"bubble of the schedule, equal ranks",
        [](const PointReport& at) { return of_step(at, at.breakdown.schedule_bubble); }},
       {"bubble by the schedule's formula",
        [](const PointReport& at) { return percent(at.pipeline->formula_bubble); }},
       {"hand-over of a microbatch, median", time(&breakdown::HandOverTimes::median)},
       {"hand-over, 90th percentile", time(&breakdown::HandOverTimes::p90)}});
}

/// Returns the table of copies from and to host memory, and of how much of them overlaps with
/// computation.
DocumentTable copies_table(const Curve& curve) {
  const auto part = [](double breakdown::Breakdown::*of) {
    return [of](const PointReport& at) { return of_step(at, (*at.breakdown.mean).*of); };
  };
  return by_ranks("copies of offloaded states, share of the traced step",
                  points_with(curve,
                              [](const PointReport& at) {
                                return at.breakdown.mean && asks_for(at, "offload", "none");
                              }),
                  {{"hidden under computation", part(&breakdown::Breakdown::hidden_copies)},
                   {"exposed", part(&breakdown::Breakdown::copies)}});
}

constexpr std::size_t most_layers = 12, most_gemm_shapes = 12;  ///< limits on the rows of a table
constexpr std::string_view untraced_cause = "untraced";

/// Returns a text that says where a table's numbers come from: "2 ranks, 4 traced steps, launch 3".
std::string traced_heading(const PointReport& point) {
  return fmt::format("{}, {}{}", base::counted(point.data->ranks, "rank"),
                     base::counted(point.breakdown.steps, "traced step"), of_launches({&point}));
}

/// Returns the causes that took or saved time in some column. They are in the order that they have
/// in the columns, but "untraced" comes first.
std::vector<std::string> causes_of(std::span<const LostColumn> columns) {
  std::vector<std::string> causes;
  std::set<std::string> present;
  for (const auto& [heading, waterfall] : columns) {
    auto next = causes.begin();
    for (const efficiency::LostTime& lost : waterfall->lost) {
      const auto known = std::ranges::find(causes, lost.cause);
      next = known == causes.end() ? causes.insert(next, lost.cause) : known;
      ++next;
      if (lost.seconds != 0) present.insert(lost.cause);
    }
  }
  std::erase_if(causes, [&](const std::string& cause) { return !present.contains(cause); });
  // "untraced", the difference between traced and untraced steps, is explained by no cause, so it
  // precedes the causes.
  std::ranges::stable_partition(causes, [](const auto& at) { return at == untraced_cause; });
  return causes;
}

/// Returns the share of the measured step that this cause took: "0" if it took no time, "0.0%" if
/// its share rounds to zero, and `undefined` if it is not known, for example because the causes do
/// not add up to the loss.
std::string loss_cell(const efficiency::Waterfall& waterfall, const std::string& cause) {
  if (!waterfall.explains && cause != untraced_cause) return std::string{undefined};
  const auto lost = std::ranges::find(waterfall.lost, cause, &efficiency::LostTime::cause);
  if (lost == waterfall.lost.end()) return waterfall.missing.empty() ? "0" : std::string{undefined};
  return lost->seconds == 0 ? "0" : percent(lost->seconds / waterfall.measured);
}

DocumentTable waterfall_table(const Curve& curve) {
  const Points points =
      points_with(curve, [](const PointReport& at) { return at.causes.waterfall.has_value(); });
  std::vector<LostColumn> columns;
  for (const PointReport* const at : points) {
    columns.emplace_back(base::counted(at->data->ranks, "rank"), &*at->causes.waterfall);
  }
  DocumentTable table = lost_time_table(columns, "measured");
  table.title += of_launches(points);
  return table;
}

DocumentTable pop_table(const Curve& curve) {
  std::vector<RankRow> rows;
  for (const Metric<efficiency::Pop>& metric : pop_metrics()) {
    rows.emplace_back(std::string{metric.heading}, [&metric](const PointReport& at) {
      return text_of(value_of(metric, *at.causes.pop), metric.unit);
    });
  }
  return by_ranks(
      "efficiencies, each the product of those below it",
      points_with(curve, [](const PointReport& at) { return at.causes.pop.has_value(); }), rows);
}

/// Keeps the first `most` rows, and adds a row that tells how many were left out.
DocumentTable first_rows(DocumentTable table, std::size_t most) {
  const std::size_t rows = table.rows.size();
  if (rows <= most) return table;
  table.rows.resize(most + 1);
  table.rows.back() = std::vector<Value>(table.columns.size(), Value(""));
  table.rows.back().front() = fmt::format("and {} more (--format json)", rows - most);
  return table;
}

/// Returns a table with a row for each part of the program, such as a layer: its share of the step,
/// and its time by category. `places` maps each of these parts to its breakdown.
template <class Places, class Name>
DocumentTable place_table(const PointReport& point, std::string_view title, const char* heading,
                          const Places& places, const Name& name) {
  DocumentTable table{.title = fmt::format("{}, {}", title, traced_heading(point))};
  const auto share = [&](double seconds) {
    return seconds == 0 ? "0" : percent(seconds / point.breakdown.mean->step);
  };
  for (const auto& [place, parts] : places) {
    std::vector<Cell> cells{{heading, std::string{name(place)}, Unit::text},
                            {"step", share(parts.step)}};
    for (const Category& category : categories()) {
      if (category.seconds == &breakdown::Breakdown::other) continue;
      cells.push_back({std::string{category.name}, share(parts.*category.seconds)});
    }
    cells.push_back({"hidden", share(parts.hidden_communication)});
    cells.push_back({"moves", share(parts.hidden_transfer)});
    add_row(table, std::move(cells));
  }
  return first_rows(std::move(table), most_layers);
}

/// Returns a table with a row for each GEMM shape: the number of calls, their share of the step,
/// the time of one call and the rate, for one rank and one step.
DocumentTable gemm_table(const PointReport& point) {
  DocumentTable table{.title = "GEMMs by shape, a rank's in a step, " + traced_heading(point)};
  for (const breakdown::GemmTime& at : breakdown::gemm_times(*point.data)) {
    const Value rate = at.seconds > 0 ? value_json(at.flop / at.seconds) : Value("");
    add_row(table, {{"m x n x k", program::to_string(at.shape), Unit::text},
                    {"calls", value_json(at.calls), Unit::digits},
                    {"step", value_json(at.seconds / point.breakdown.mean->step), Unit::share},
                    {"time of one", value_json(at.seconds / at.calls), Unit::seconds},
                    {"FLOP/s", rate, Unit::flop_rate}});
  }
  return first_rows(std::move(table), most_gemm_shapes);
}

/// Returns all labels and notes that the point has in any of its launches.
std::string notes_of(std::span<const merge::LaunchPoint> points) {
  std::set<std::string> all;
  for (const merge::LaunchPoint& at : points) all.insert(notes(*at.point));
  all.erase("");
  return base::listed(all);
}

}  // namespace

DocumentTable lost_time_table(std::span<const LostColumn> columns, std::string_view whole) {
  DocumentTable table{.title =
                          fmt::format("lost time, from ideal to {}, share of the step", whole)};
  if (columns.empty()) return table;
  const auto row = [&](const std::string& name, const auto& cell) {
    std::vector<Cell> cells{{"", name, Unit::text}};
    for (const auto& [heading, waterfall] : columns) cells.push_back({heading, cell(*waterfall)});
    add_row(table, std::move(cells));
  };
  using efficiency::Waterfall;
  row("ideal step", [](const Waterfall& at) { return value_text(at.ideal, Unit::seconds); });
  for (const std::string& cause : causes_of(columns)) {
    row("  " + cause, [&](const Waterfall& at) { return loss_cell(at, cause); });
  }
  row("  all lost", [](const Waterfall& at) { return percent(1 - at.ideal / at.measured); });
  row(fmt::format("{} step", whole),
      [](const Waterfall& at) { return value_text(at.measured, Unit::seconds); });
  return table;
}

DocumentTable scaling_table(const Curve& curve, const merge::JoinedCurve* joined) {
  Points points;
  std::vector<Value> launches, labels;
  std::vector<std::string> reasons;
  for (const PointReport& at : curve.points) {
    points.push_back(&at);
    reasons.push_back(excuse(at));
    labels.push_back(reasons.back().empty() ? value_json(notes(at)) : Value());
    if (joined == nullptr) continue;
    const auto& of = joined->launches[points.size() - 1];
    launches.emplace_back(of.size());
    labels.back() = value_json(notes_of(of));
  }
  const std::string keys =
      fmt::format("ranks {}mesh_text | {} interval ... efficiency {} notes",
                  spans_nodes(curve) ? "nodes_used " : "",
                  joined == nullptr ? "step_time_shown" : "launches step_time_shown spread",
                  joined == nullptr ? "efficiency_bar" : "");
  DocumentTable table = table_of<PointReport>(
      point_metrics(), points, completed<PointReport>(point_metrics(), keys, in_text),
      {{{"launches", "launches", Unit::count}, launches}, {{"notes", ""}, labels}});
  for (DocumentColumn& column : table.columns) {
    if (column.key == "throughput") column.heading = throughput_unit(curve);
    if (column.key == "efficiency") column.heading = efficiency_column(curve);
    if (column.key == "efficiency_bar") column.heading = efficiency_heading();
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    // A point that is not ok shows no numbers, even if some were measured.
    if (reasons[i].empty()) continue;
    std::fill(table.rows[i].begin() + static_cast<std::ptrdiff_t>(table.named), table.rows[i].end(),
              Value());
  }
  table.title = joined == nullptr ? "" : "over launches";
  table.reasons = std::move(reasons);
  return table;
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

std::vector<DocumentTable> cause_tables(const Curve& curve, const Sections& sections) {
  std::vector<DocumentTable> tables;
  const auto add = [&](Section section, DocumentTable table) {
    if (!table.rows.empty() && sections.has(section)) tables.push_back(std::move(table));
  };
  add(Section::waterfall, waterfall_table(curve));
  add(Section::pop, pop_table(curve));
  for (const auto table : {replica_table, copies_table, pipeline_table}) {
    add(Section::strategies, table(curve));
  }
  const Points traced = traced_points(curve);
  if (traced.empty()) return tables;
  const PointReport& largest = *traced.back();
  const breakdown::BreakdownResult& of = largest.breakdown;
  add(Section::phases, place_table(largest, "by phase", "phase", of.by_phase,
                                   [](auto phase) { return program::name(phase); }));
  add(Section::phases, place_table(largest, "communication by mesh axis", "axis", of.by_axes,
                                   [](auto axes) { return mesh::to_string(axes); }));
  if (sections.has(Section::phases)) add(Section::phases, gemm_table(largest));
  if (of.by_layer.size() > 1) {
    const auto name = [](int layer) { return layer < 0 ? "none" : std::to_string(layer); };
    add(Section::layers, place_table(largest, "by layer", "layer", of.by_layer, name));
  }
  return tables;
}

}  // namespace isoscale::analysis::render
