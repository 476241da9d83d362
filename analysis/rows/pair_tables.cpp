// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "analysis/point_facts.hpp"
#include "analysis/render/text_escape.hpp"
#include "analysis/rows/bench_tables.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

/// "0.0117", "5.03", "1234": three significant digits, so that slow links show more than zeros.
std::string three_digits(double value) {
  return value < 99.95 ? fmt::format("{:#.3g}", value) : fmt::format("{:.0f}", value);
}

constexpr std::size_t largest_matrix = 16;  ///< ranks

/// Values that a matrix shows in one unit.
struct Quantity {
  const char* title;
  std::optional<double> PairReport::*value;
  double unit;  ///< what the cells count in
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

}  // namespace isoscale::analysis
