// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/curve_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "analysis/breakdown/op_times.hpp"
#include "analysis/breakdown/pipeline_report.hpp"
#include "base/text.hpp"
#include "program/op.hpp"
#include "units/text.hpp"

namespace isoscale::analysis::render {
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

/// Builds a table with one column for each point, headed by its rank count, and a named row for
/// each figure.
class ByRanks {
 public:
  ByRanks(std::string title, Points points)
      : points_(std::move(points)),
        table_{.title = std::move(title) + of_launches(points_),
               .columns = {{"", Align::left}},
               .rows = {}} {
    for (const PointReport* const point : points_) {
      table_.columns.push_back({ranks_heading(*point)});
    }
  }

  ByRanks& add(std::string name, const std::function<std::string(const PointReport&)>& cell) {
    Row row{.cells = {std::move(name)}};
    for (const PointReport* const point : points_) row.cells.push_back(cell(*point));
    table_.rows.push_back(std::move(row));
    return *this;
  }
  [[nodiscard]] const Points& points() const { return points_; }
  /// Returns the table, which has no rows if there are no points.
  [[nodiscard]] TitledTable take() {
    if (points_.empty()) table_.rows.clear();
    return std::move(table_);
  }

 private:
  Points points_;
  TitledTable table_;
};

constexpr int most_replicas = 12;  ///< rows of the table

/// True if a point's option differs from the default.
bool asks_for(const PointReport& point, const char* key, std::string_view usual) {
  const auto option = point.data->options.find(key);
  return option != point.data->options.end() && option->second != usual;
}

/// Returns the share of the step in which the ranks of a replica compute; absent where none of them
/// was traced.
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

/// Returns the utilisation of replicas that were given different shares of the batch.
TitledTable replica_table(const Curve& curve) {
  ByRanks table{"utilisation of replicas, compute over step",
                points_with(curve, [](const PointReport& point) {
                  return point.breakdown.mean && point.data->mesh.dp > 1 &&
                         asks_for(point, "partition", "equal");
                })};
  int most = 0;
  for (const PointReport* const point : table.points()) most = std::max(most, point->data->mesh.dp);
  for (int replica = 0; replica < std::min(most, most_replicas); ++replica) {
    table.add(fmt::format("replica {}", replica),
              [replica](const PointReport& point) { return percent(utilisation(point, replica)); });
  }
  return table.take();
}

/// Returns a time as a share of the point's traced step.
std::string of_step(const PointReport& at, const std::optional<double>& seconds) {
  const bool known = seconds && at.breakdown.mean && at.breakdown.mean->step > 0;
  return known ? percent(*seconds / at.breakdown.mean->step) : std::string{undefined};
}

/// Returns the table of the pipeline bubble compared with its formula, and of the time of a message
/// between stages.
TitledTable pipeline_table(const Curve& curve) {
  const auto time = [](double breakdown::HandOverTimes::*part) {
    return [part](const PointReport& at) {
      const auto& times = at.pipeline->hand_over;
      return times ? units::format(units::Seconds{(*times).*part}) : std::string{undefined};
    };
  };
  return ByRanks{"pipeline, share of the traced step",
                 points_with(curve, [](const PointReport& at) { return at.pipeline.has_value(); })}
      .add("bubble, measured",
           [](const PointReport& at) {
             const bool known = at.breakdown.mean && at.breakdown.bubble_known;
             return of_step(at, known ? std::optional{at.breakdown.mean->bubble} : std::nullopt);
           })
      .add("bubble of the schedule, equal ranks",
           [](const PointReport& at) { return of_step(at, at.breakdown.schedule_bubble); })
      .add("bubble by the schedule's formula",
           [](const PointReport& at) { return percent(at.pipeline->formula_bubble); })
      .add("hand-over of a microbatch, median", time(&breakdown::HandOverTimes::median))
      .add("hand-over, 90th percentile", time(&breakdown::HandOverTimes::p90))
      .take();
}

/// Returns the table of copies from and to host memory, and of how much of them overlaps with
/// computation.
TitledTable copies_table(const Curve& curve) {
  const auto part = [](double breakdown::Breakdown::*of) {
    return [of](const PointReport& at) { return of_step(at, (*at.breakdown.mean).*of); };
  };
  return ByRanks{"copies of offloaded states, share of the traced step",
                 points_with(curve,
                             [](const PointReport& at) {
                               return at.breakdown.mean && asks_for(at, "offload", "none");
                             })}
      .add("hidden under computation", part(&breakdown::Breakdown::hidden_copies))
      .add("exposed", part(&breakdown::Breakdown::copies))
      .take();
}

constexpr std::size_t most_layers = 12, most_gemm_shapes = 12;  ///< rows of a table
constexpr std::string_view untraced_cause = "untraced";

/// Returns the source of a table: "2 ranks, 4 traced steps, launch 3".
std::string traced_heading(const PointReport& point) {
  return fmt::format("{}, {} traced step{}{}", ranks_heading(point), point.breakdown.steps,
                     point.breakdown.steps == 1 ? "" : "s", of_launches({&point}));
}

/// Returns the causes of all points, in an order that agrees with the order of causes at each
/// point.
std::vector<std::string> causes_of(const Points& points) {
  std::vector<std::string> causes;
  for (const PointReport* const point : points) {
    auto next = causes.begin();
    for (const efficiency::LostTime& lost : point->causes.waterfall->lost) {
      const auto known = std::ranges::find(causes, lost.cause);
      next = known == causes.end() ? causes.insert(next, lost.cause) : known;
      ++next;
    }
  }
  return causes;
}

/// Returns the share of the measured step that this cause took: "0" if it took no time, "0.0%" if
/// its share rounds to zero, and no number if the causes do not explain the loss.
std::string loss_cell(const efficiency::Waterfall& waterfall, const std::string& cause) {
  if (!waterfall.explains && cause != untraced_cause) return std::string{undefined};
  const auto lost = std::ranges::find(waterfall.lost, cause, &efficiency::LostTime::cause);
  if (lost == waterfall.lost.end()) return waterfall.missing.empty() ? "0" : std::string{undefined};
  return lost->seconds == 0 ? "0" : percent(lost->seconds / waterfall.measured);
}

/// True if this cause neither added nor saved time at any point, as for the bubble if there is no
/// pipeline.
bool is_nothing(const Points& points, const std::string& cause) {
  return std::ranges::all_of(points, [&cause](const PointReport* point) {
    const auto& all = point->causes.waterfall->lost;
    const auto lost = std::ranges::find(all, cause, &efficiency::LostTime::cause);
    return lost == all.end() || lost->seconds == 0;
  });
}

TitledTable waterfall_table(const Curve& curve) {
  ByRanks table{
      "lost time, from ideal to measured, share of the step",
      points_with(curve, [](const PointReport& at) { return at.causes.waterfall.has_value(); })};
  const auto row = [&table](const std::string& name,
                            const std::function<std::string(const efficiency::Waterfall&)>& cell) {
    table.add(name, [&cell](const PointReport& at) { return cell(*at.causes.waterfall); });
  };
  const auto time = [](double seconds) { return units::format(units::Seconds{seconds}); };
  row("ideal step", [&](const efficiency::Waterfall& at) { return time(at.ideal); });
  std::vector<std::string> causes = causes_of(table.points());
  // No cause explains the difference between traced and untraced steps, so it comes before the
  // causes.
  std::ranges::stable_partition(causes, [](const auto& at) { return at == untraced_cause; });
  for (const std::string& cause : causes) {
    if (is_nothing(table.points(), cause)) continue;
    row("  " + cause, [&](const efficiency::Waterfall& at) { return loss_cell(at, cause); });
  }
  row("  all lost",
      [](const efficiency::Waterfall& at) { return percent(1 - at.ideal / at.measured); });
  row("measured step", [&](const efficiency::Waterfall& at) { return time(at.measured); });
  return table.take();
}

TitledTable pop_table(const Curve& curve) {
  const auto part = [](auto of) {
    return [of](const PointReport& at) { return percent((*at.causes.pop).*of); };
  };
  return ByRanks{
      "efficiencies, each the product of those below it",
      points_with(curve, [](const PointReport& at) { return at.causes.pop.has_value(); })}
      .add("global", part(&efficiency::Pop::global))
      .add("├ parallel", part(&efficiency::Pop::parallel))
      .add("│ ├ load balance", part(&efficiency::Pop::load_balance))
      .add("│ └ communication", part(&efficiency::Pop::communication))
      .add("│   ├ serialisation", part(&efficiency::Pop::serialisation))
      .add("│   └ transfer", part(&efficiency::Pop::transfer))
      .add("└ computation scalability", part(&efficiency::Pop::computation_scalability))
      .add("  ├ work (FLOP)", part(&efficiency::Pop::work_scalability))
      .add("  └ speed (FLOP/s)", part(&efficiency::Pop::speed_scalability))
      .take();
}

/// Returns a table with a row for each place in the program: its share of the step, and its time by
/// category. `places` maps each place to its breakdown.
template <class Places, class Name>
TitledTable place_table(const PointReport& point, std::string_view title, const char* heading,
                        const Places& places, const Name& name) {
  TitledTable table{fmt::format("{}, {}", title, traced_heading(point))};
  for (const auto& [place, parts] : places) {
    const auto cell = [&](double seconds) {
      return seconds == 0 ? "0" : percent(seconds / point.breakdown.mean->step);
    };
    std::vector<Cell> cells{words_cell(heading, std::string{name(place)}),
                            {"step", cell(parts.step)}};
    for (const Category& category : categories()) {
      if (category.seconds == &breakdown::Breakdown::other) continue;
      cells.push_back({std::string{category.name}, cell(parts.*category.seconds)});
    }
    cells.push_back({"hidden", cell(parts.hidden_communication)});
    table.add(std::move(cells));
  }
  return table;
}

/// Keeps the first `most` rows, and adds how many more there are.
TitledTable first_rows(TitledTable table, std::size_t most) {
  const std::size_t rows = table.rows.size();
  if (rows <= most) return table;
  table.rows.resize(most);
  table.rows.push_back({.cells = {fmt::format("and {} more (--format json)", rows - most)}});
  return table;
}

/// Returns a table with a row for each GEMM shape: the calls and their total time, on one rank in
/// one step.
TitledTable gemm_table(const PointReport& point) {
  TitledTable table{"GEMMs by shape, a rank's in a step, " + traced_heading(point)};
  for (const breakdown::GemmTime& at : breakdown::gemm_times(*point.data)) {
    const auto rate = at.seconds > 0 ? std::optional{at.flop / at.seconds} : std::nullopt;
    table.add({words_cell("m x n x k", program::to_string(at.shape)),
               {"calls", fmt::format("{:.4g}", at.calls)},
               {"step", percent(at.seconds / point.breakdown.mean->step)},
               {"time of one", units::format(units::Seconds{at.seconds / at.calls})},
               {"FLOP/s", rate ? units::format(units::FlopsPerSecond{*rate}) : ""}});
  }
  return first_rows(std::move(table), most_gemm_shapes);
}

/// Returns the labels that the point has in at least one launch.
std::string notes_of(std::span<const merge::LaunchPoint> points) {
  std::set<std::string> all;
  for (const merge::LaunchPoint& at : points) all.insert(notes(*at.point));
  all.erase("");
  return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

TitledTable scaling_table(const Curve& curve, const merge::JoinedCurve* joined) {
  TitledTable table{joined == nullptr ? "" : "over launches"};
  const bool with_nodes = spans_nodes(curve);
  for (const PointReport& at : curve.points) {
    std::vector<Cell> cells{{"ranks", std::to_string(at.data->ranks)}};
    if (with_nodes) cells.push_back(words_cell("nodes", nodes_cell(at)));
    cells.push_back(words_cell("mesh", mesh::to_string(at.data->mesh)));
    const std::size_t named = cells.size();
    std::string labels = notes(at);
    if (joined != nullptr) {
      const auto& launches = joined->launches[static_cast<std::size_t>(&at - curve.points.data())];
      cells.push_back({"launches", std::to_string(launches.size())});
      labels = notes_of(launches);
    }
    cells.push_back({"step time", step_time(at)});
    if (joined != nullptr) cells.push_back({"spread", percent(merge::spread_of(at))});
    cells.push_back({"±95%", interval(at)});
    cells.push_back({throughput_unit(curve), throughput(at)});
    cells.push_back({"speed-up", fixed(at.speedup)});
    cells.push_back({"FLOP/s/rank", flops_per_rank(at)});
    cells.push_back({efficiency_column(curve), percent(at.efficiency)});
    if (joined == nullptr) {
      cells.push_back({efficiency_heading(), at.efficiency ? efficiency_bar(*at.efficiency) : "",
                       Align::drawing});
    }
    cells.push_back(words_cell("", std::move(labels)));
    table.add(std::move(cells), excuse(at), named);
  }
  return table;
}

std::vector<TitledTable> strategy_tables(const Curve& curve) {
  std::vector<TitledTable> tables{replica_table(curve), copies_table(curve), pipeline_table(curve)};
  std::erase_if(tables, [](const TitledTable& table) { return table.rows.empty(); });
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
  const auto add = [&](Section section, TitledTable table) {
    if (!table.rows.empty() && sections.has(section)) tables.push_back(std::move(table));
  };
  add(Section::waterfall, waterfall_table(curve));
  add(Section::pop, pop_table(curve));
  for (TitledTable& table : strategy_tables(curve)) add(Section::strategies, std::move(table));
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
    add(Section::layers,
        first_rows(place_table(largest, "by layer", "layer", of.by_layer, name), most_layers));
  }
  return tables;
}

}  // namespace isoscale::analysis::render
