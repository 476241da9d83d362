// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "analysis/render/bench_tables.hpp"
#include "analysis/render/text.hpp"
#include "results/point_facts.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

using results::CalibrationCurve;
using results::CalibrationGrowth;
using results::GemmCeiling;

/// Returns "0.0117", "5.03", "1234": three significant digits, so that slow links do not show as
/// zeros.
std::string three_digits(double value) {
  return value < 99.95 ? fmt::format("{:#.3g}", value) : fmt::format("{:.0f}", value);
}

constexpr std::size_t largest_matrix = 16;  ///< number of ranks

/// A quantity of pairs that a matrix shows in one unit.
struct Quantity {
  const char* title;
  std::optional<double> PairReport::*value;
  double unit;  ///< SI value of the unit that cells have
};

std::vector<TitledTable> matrices(const PointReport& point) {
  const BenchReport& bench = *point.bench;
  constexpr Quantity quantities[] = {
      {"one-way latency in us, from (row) to (column)", &PairReport::latency, 1e-6},
      {"bandwidth in GB/s, from (row) to (column)", &PairReport::bandwidth, 1e9},
      {"bandwidth of both directions at once in GB/s", &PairReport::bidirectional, 1e9}};
  std::set<int> ranks;
  std::map<std::pair<int, int>, const PairReport*> pairs;
  for (const PairReport& pair : bench.pairs) {
    const int src = world_rank(*point.data, pair.src), dst = world_rank(*point.data, pair.dst);
    ranks.insert({src, dst});
    pairs[{src, dst}] = &pair;
  }
  if (ranks.size() > largest_matrix) return {};
  std::vector<TitledTable> tables;
  for (const Quantity& quantity : quantities) {
    const bool measured = std::ranges::any_of(
        bench.pairs, [&](const PairReport& pair) { return (pair.*quantity.value).has_value(); });
    if (!measured) continue;
    TitledTable table{.title = quantity.title, .columns = {{"rank"}}, .rows = {}};
    for (const int dst : ranks) table.columns.push_back({std::to_string(dst)});
    for (const int src : ranks) {
      Row row{.cells = {std::to_string(src)}, .tail = ""};
      for (const int dst : ranks) {
        const auto pair = pairs.find({src, dst});
        const auto value = pair == pairs.end() ? std::nullopt : pair->second->*quantity.value;
        const bool failed = pair != pairs.end() && !pair->second->failure.empty();
        row.cells.push_back(src == dst ? ""
                            : value    ? three_digits(*value / quantity.unit)
                            : failed   ? "failed"
                                       : std::string{undefined});
      }
      table.rows.push_back(std::move(row));
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

TitledTable class_table(const BenchReport& bench) {
  TitledTable table{.title = "link classes: medians over ordered pairs, the fastest first",
                    .columns = {{"class", Align::left},
                                {"pairs"},
                                {"latency"},
                                {"bandwidth"},
                                {"lowest"},
                                {"highest"},
                                {"both directions"},
                                {"of the fastest"}},
                    .rows = {}};
  const auto fastest = bench.classes.front().bandwidth;
  for (const ClassReport& at : bench.classes) {
    const auto share =
        fastest && at.bandwidth ? std::optional{*at.bandwidth / *fastest} : std::nullopt;
    table.rows.push_back(
        {.cells = {at.name.empty() ? std::string{undefined} : escape(at.name),
                   std::to_string(at.pairs), time_cell(at.latency), bandwidth_cell(at.bandwidth),
                   bandwidth_cell(at.lowest), bandwidth_cell(at.highest),
                   bandwidth_cell(at.bidirectional), percent(share)},
         .tail = ""});
  }
  return table;
}

bool is_pair_kind(const std::string& kind) {
  return kind == "latency" || kind == "bandwidth" || kind == "bidirectional";
}

/// Returns "4.1 us ±2%": a fitted value with the wider half of its interval.
template <class Format>
std::string fitted_cell(const std::optional<results::Fitted>& fitted, Format format) {
  if (!fitted) return std::string{undefined};
  std::string text = format(fitted->value);
  if (!fitted->lower || !fitted->upper) return text;
  const double half =
      std::max(fitted->value - *fitted->lower, *fitted->upper - fitted->value) / fitted->value;
  return text + " ±" + units::format_percent(half);
}

TitledTable curve_table(const results::CalibrationData& calibration) {
  TitledTable table{.title = "time against size",
                    .columns = {{"op", Align::left},
                                {"type", Align::left},
                                {"class", Align::left},
                                {"by", Align::left},
                                {"ranks"},
                                {"sizes"},
                                {"latency"},
                                {"bandwidth"},
                                {"error"},
                                {"", Align::left}},
                    .rows = {}};
  // On a single node all curves have one node, so the column is left out.
  const bool with_nodes = std::ranges::any_of(
      calibration.curves, [](const CalibrationCurve& at) { return at.nodes > 1; });
  constexpr std::ptrdiff_t behind_ranks = 5;
  if (with_nodes) table.columns.insert(table.columns.begin() + behind_ranks, {"nodes"});
  for (const CalibrationCurve& at : calibration.curves) {
    const auto time = [](double value) { return time_cell(std::optional{value}); };
    const auto speed = [](double value) { return bandwidth_cell(value); };
    table.rows.push_back(
        {.cells = {escape(at.op), escape(at.dtype), escape(at.link_class),
                   escape(at.implementation), std::to_string(at.members),
                   std::to_string(at.samples.size()), fitted_cell(at.latency, time),
                   fitted_cell(at.bandwidth, speed), percent(at.error), escape(at.labels)},
         .tail = ""});
    if (!with_nodes) continue;
    std::vector<std::string>& cells = table.rows.back().cells;
    cells.insert(cells.begin() + behind_ranks,
                 at.nodes > 0 ? std::to_string(at.nodes) : std::string{undefined});
  }
  return table;
}

TitledTable growth_table(const results::CalibrationData& calibration) {
  TitledTable table{.title = "growth with the ranks of a group",
                    .columns = {{"op", Align::left},
                                {"type", Align::left},
                                {"class", Align::left},
                                {"ranks", Align::left},
                                {"latency", Align::left},
                                {"bandwidth"}},
                    .rows = {}};
  for (const CalibrationGrowth& at : calibration.growth) {
    std::string latency{undefined};
    if (!at.law.empty()) {
      latency = fmt::format("{} + {} x {}", time_cell(at.base), time_cell(at.slope), at.law);
    } else if (!at.latency.empty() && std::isfinite(at.latency.front()) &&
               std::isfinite(at.latency.back())) {
      latency =
          fmt::format("{} to {}", time_cell(at.latency.front()), time_cell(at.latency.back()));
    }
    table.rows.push_back(
        {.cells = {escape(at.op), escape(at.dtype), escape(at.link_class),
                   fmt::format("{}", fmt::join(at.members, ", ")), escape(latency),
                   at.bandwidth_factor ? fmt::format("x{:.2f}", *at.bandwidth_factor)
                                       : std::string{undefined}},
         .tail = ""});
  }
  return table;
}

TitledTable ceiling_table(const results::CalibrationData& calibration) {
  TitledTable table{.title = "best multiplication of each type: what MFU is read against",
                    .columns = {{"type", Align::left},
                                {"caches", Align::left},
                                {"FLOP/s"},
                                {"m"},
                                {"n"},
                                {"k"},
                                {"batch"},
                                {"error"},
                                {"", Align::left}},
                    .rows = {}};
  for (const GemmCeiling& at : calibration.ceilings) {
    table.rows.push_back({.cells = {escape(at.dtype), escape(at.cache), rate_cell(at.rate),
                                    count_cell(at.m), count_cell(at.n), count_cell(at.k),
                                    count_cell(at.batch), percent(at.error), escape(at.labels)},
                          .tail = ""});
  }
  return table;
}

}  // namespace

std::vector<TitledTable> pair_tables(const PointReport& point) {
  const BenchReport& bench = *point.bench;
  std::vector<TitledTable> tables;
  if (!bench.pairs.empty()) {
    tables = matrices(point);
    tables.push_back(class_table(bench));
  }
  TitledTable rest{.title = "ranks at once",
                   .columns = {{"pattern", Align::left},
                               {"class", Align::left},
                               {"moved"},
                               {"time"},
                               {"±95%"},
                               {"bandwidth"}},
                   .rows = {}};
  for (const RowReport& row : bench.rows) {
    const std::string kind = text_of(*row.data, "kind");
    if (text_of(*row.data, "op") != "p2p" || is_pair_kind(kind)) continue;
    Row cells{.cells = {escape(kind), escape(text_of(*row.data, "class")),
                        size_cell(number_of(*row.data, "bytes"))},
              .tail = row_excuse(row)};
    if (cells.tail.empty()) {
      cells.cells.insert(cells.cells.end(),
                         {time_cell(row), interval_cell(row), bandwidth_cell(row.bandwidth)});
    }
    rest.rows.push_back(std::move(cells));
  }
  if (!rest.rows.empty()) tables.push_back(std::move(rest));
  return tables;
}

std::vector<TitledTable> calibration_tables(const RunReport& report) {
  const results::CalibrationData& calibration = report.calibration;
  std::vector<TitledTable> tables;
  if (!calibration.curves.empty()) tables.push_back(curve_table(calibration));
  if (!calibration.growth.empty()) tables.push_back(growth_table(calibration));
  if (!calibration.ceilings.empty()) tables.push_back(ceiling_table(calibration));
  return tables;
}

}  // namespace isoscale::analysis
