// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/launches/joined_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "analysis/causes/cause_tables.hpp"
#include "analysis/render/node_cells.hpp"
#include "analysis/render/sentences.hpp"
#include "analysis/render/text_escape.hpp"
#include "base/text.hpp"

namespace isoscale::analysis {
namespace {

constexpr std::size_t most_columns = 6;  ///< launches beside each other

using Numbers = std::set<std::size_t>;

std::size_t number_of(const LaunchPoint& at, std::span<const RunReport> reports) {
  return static_cast<std::size_t>(at.run - reports.data()) + 1;
}

std::string launches(const Numbers& numbers) {
  return fmt::format("{} {}", base::plural(numbers.size(), "launch"), fmt::join(numbers, ", "));
}

/// Labels of any launch of the point.
std::string notes_of(std::span<const LaunchPoint> points) {
  std::set<std::string> all;
  for (const LaunchPoint& at : points) all.insert(notes(*at.point));
  all.erase("");
  return fmt::format("{}", fmt::join(all, ", "));
}

TitledTable curve_table(const JoinedCurve& joined) {
  const Curve& curve = joined.curve;
  const bool with_nodes = spans_nodes(curve);
  TitledTable table{.title = "over launches", .columns = {{"ranks"}}, .rows = {}};
  if (with_nodes) table.columns.push_back({"nodes", Align::left});
  const std::vector<Column> rest{{"mesh", Align::left},
                                 {"launches"},
                                 {"step time"},
                                 {"spread"},
                                 {"±95%"},
                                 {throughput_unit(curve)},
                                 {"speed-up"},
                                 {"FLOP/s/rank"},
                                 {efficiency_column(curve)},
                                 {"", Align::left}};
  table.columns.insert(table.columns.end(), rest.begin(), rest.end());
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const PointReport& point = curve.points[i];
    Row row{.cells = {std::to_string(point.data->ranks)}, .tail = ""};
    if (with_nodes) row.cells.push_back(nodes_cell(point));
    row.cells.insert(row.cells.end(),
                     {mesh::to_string(point.data->mesh), std::to_string(joined.launches[i].size()),
                      step_time(point), percent(spread_of(point)), interval(point),
                      throughput(point), fixed(point.speedup), flops_per_rank(point),
                      percent(point.efficiency), notes_of(joined.launches[i])});
    table.rows.push_back(std::move(row));
  }
  return table;
}

Numbers numbers_of(const JoinedCurve& joined, std::span<const RunReport> reports) {
  Numbers numbers;
  for (const auto& points : joined.launches) {
    for (const LaunchPoint& at : points) numbers.insert(number_of(at, reports));
  }
  return numbers;
}

TitledTable times_table(const JoinedCurve& joined, std::span<const RunReport> reports) {
  const Numbers numbers = numbers_of(joined, reports);
  TitledTable table{.title = "step time of each launch, and the ±95% interval inside it",
                    .columns = {{"ranks"}},
                    .rows = {}};
  for (const std::size_t number : numbers) {
    table.columns.push_back({fmt::format("launch {}", number)});
  }
  for (const auto& points : joined.launches) {
    if (points.size() < 2) continue;
    std::map<std::size_t, std::string> cells;
    for (const LaunchPoint& at : points) {
      cells[number_of(at, reports)] = step_time(*at.point) + " " + interval(*at.point);
    }
    Row row{.cells = {std::to_string(points.front().point->data->ranks)}, .tail = ""};
    for (const std::size_t number : numbers) row.cells.push_back(cells[number]);
    table.rows.push_back(std::move(row));
  }
  return table;
}

bool has_repeats(const JoinedCurve& joined) {
  return std::ranges::any_of(joined.launches, [](const auto& at) { return at.size() > 1; });
}

void add_left_out(const JoinedCurve& joined, std::span<const RunReport> reports, Facts& facts) {
  std::map<std::pair<int, std::string>, Numbers> all;
  for (const LeftOut& at : joined.left_out) {
    all[{at.at.point->data->ranks, at.reason}].insert(number_of(at.at, reports));
  }
  for (const auto& [what, numbers] : all) {
    facts.emplace_back("left out", fmt::format("{}, {}: {}", ranks_text({what.first}),
                                               launches(numbers), escape(what.second)));
  }
}

/// What the numbers of launches say, and what they do not.
void add_launches(const JoinedCurve& joined, std::span<const RunReport> reports, Facts& facts) {
  std::vector<int> once;
  for (const auto& points : joined.launches) {
    if (points.size() == 1) once.push_back(points.front().point->data->ranks);
  }
  if (!once.empty()) {
    facts.emplace_back("launches", ranks_text(once) +
                                       ": one launch: how far the next would be from it is not "
                                       "known, and the interval inside it does not say");
  }
  if (has_repeats(joined) && numbers_of(joined, reports).size() > most_columns) {
    facts.emplace_back("launches", "the step times of each are in --format csv and json");
  }
}

}  // namespace

std::vector<TitledTable> joined_tables(const JoinedCurve& joined,
                                       std::span<const RunReport> reports) {
  std::vector<TitledTable> tables;
  if (!joined.curve.points.empty()) tables.push_back(curve_table(joined));
  if (has_repeats(joined) && numbers_of(joined, reports).size() <= most_columns) {
    tables.push_back(times_table(joined, reports));
  }
  return tables;
}

Facts joined_remarks(const JoinedCurve& joined, std::span<const RunReport> reports) {
  Facts facts;
  if (joined.curve.points.empty()) {
    add_left_out(joined, reports, facts);
    return facts;
  }
  for (const auto& [name, value] : joined.machine) facts.emplace_back(name, escape(value));
  for (const std::string& why : joined.apart) {
    facts.emplace_back("apart", "not joined with " + escape(why));
  }
  add_left_out(joined, reports, facts);
  add_launches(joined, reports, facts);
  for (Facts::value_type& fact : baseline_remark(joined.curve)) facts.push_back(std::move(fact));
  Sentences few;
  for (const PointReport& point : joined.curve.points) few.add(point, few_steps_text(point));
  few.append_to(facts, "label");
  Sentences axes;
  for (const PointReport& point : joined.curve.points) axes.add(point, axes_text(point));
  axes.append_to(facts, "axes");
  for (Facts::value_type& fact : cause_remarks(joined.curve)) facts.push_back(std::move(fact));
  return facts;
}

std::vector<std::string> joined_key() {
  return {
      "Over launches: step time is the median of the launches' medians; spread is (max - min) / "
      "median over launches.",
      "±95% of these: t-interval over launches, from 3 on. The interval inside one launch says "
      "nothing about the next.",
      "Where a step went, lost time and causes are those of each point's launch nearest to the "
      "median."};
}

}  // namespace isoscale::analysis
