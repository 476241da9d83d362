// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "analysis/render/bench_tables.hpp"
#include "analysis/render/text.hpp"
#include "results/records/point_facts.hpp"
#include "units/text.hpp"

namespace isoscale::analysis::render {
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

/// A quantity that is measured for each pair of ranks; a matrix shows it in one unit.
struct Quantity {
  const char* title;
  std::optional<double> microbench::PairReport::*value;
  double unit;  ///< the unit of the cells, in SI units
};

std::vector<TitledTable> matrices(const PointReport& point) {
  const microbench::BenchReport& bench = *point.bench;
  constexpr Quantity quantities[] = {
      {"one-way latency in us, from (row) to (column)", &microbench::PairReport::latency, 1e-6},
      {"bandwidth in GB/s, from (row) to (column)", &microbench::PairReport::bandwidth, 1e9},
      {"bandwidth of both directions at once in GB/s", &microbench::PairReport::bidirectional,
       1e9}};
  std::set<int> ranks;
  std::map<std::pair<int, int>, const microbench::PairReport*> pairs;
  for (const microbench::PairReport& pair : bench.pairs) {
    const int src = world_rank(*point.data, pair.src), dst = world_rank(*point.data, pair.dst);
    ranks.insert({src, dst});
    pairs[{src, dst}] = &pair;
  }
  if (ranks.size() > largest_matrix) return {};
  std::vector<TitledTable> tables;
  for (const Quantity& quantity : quantities) {
    const bool measured = std::ranges::any_of(bench.pairs, [&](const microbench::PairReport& pair) {
      return (pair.*quantity.value).has_value();
    });
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

TitledTable class_table(const microbench::BenchReport& bench) {
  TitledTable table{"link classes: medians over ordered pairs, the fastest first"};
  const auto fastest = bench.classes.front().bandwidth;
  for (const microbench::ClassReport& at : bench.classes) {
    const auto share =
        fastest && at.bandwidth ? std::optional{*at.bandwidth / *fastest} : std::nullopt;
    table.add({words_cell("class", at.name.empty() ? std::string{undefined} : escape(at.name)),
               {"pairs", std::to_string(at.pairs)},
               {"latency", time_cell(at.latency)},
               {"bandwidth", bandwidth_cell(at.bandwidth)},
               {"lowest", bandwidth_cell(at.lowest)},
               {"highest", bandwidth_cell(at.highest)},
               {"both directions", bandwidth_cell(at.bidirectional)},
               {"of the fastest", percent(share)}});
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
  TitledTable table{"time against size"};
  // On a single node the column of nodes would always show 1, so it is left out.
  const bool with_nodes = std::ranges::any_of(
      calibration.curves, [](const CalibrationCurve& at) { return at.nodes > 1; });
  const auto time = [](double value) { return time_cell(std::optional{value}); };
  for (const CalibrationCurve& at : calibration.curves) {
    std::vector<Cell> cells{words_cell("op", escape(at.op)),
                            words_cell("type", escape(at.dtype)),
                            words_cell("class", escape(at.link_class)),
                            words_cell("by", escape(at.implementation)),
                            {"ranks", std::to_string(at.members)}};
    if (with_nodes) {
      cells.push_back({"nodes", at.nodes > 0 ? std::to_string(at.nodes) : std::string{undefined}});
    }
    cells.push_back({"sizes", std::to_string(at.samples.size())});
    cells.push_back({"latency", fitted_cell(at.latency, time)});
    cells.push_back({"bandwidth", fitted_cell(at.bandwidth, bandwidth_cell)});
    cells.push_back({"error", percent(at.error)});
    cells.push_back(words_cell("", escape(at.labels)));
    table.add(std::move(cells));
  }
  return table;
}

TitledTable growth_table(const results::CalibrationData& calibration) {
  TitledTable table{"growth with the ranks of a group"};
  for (const CalibrationGrowth& at : calibration.growth) {
    std::string latency{undefined};
    if (!at.law.empty()) {
      latency = fmt::format("{} + {} x {}", time_cell(at.base), time_cell(at.slope), at.law);
    } else if (!at.latency.empty() && std::isfinite(at.latency.front()) &&
               std::isfinite(at.latency.back())) {
      latency =
          fmt::format("{} to {}", time_cell(at.latency.front()), time_cell(at.latency.back()));
    }
    const std::string factor =
        at.bandwidth_factor ? fmt::format("x{:.2f}", *at.bandwidth_factor) : std::string{undefined};
    table.add({words_cell("op", escape(at.op)),
               words_cell("type", escape(at.dtype)),
               words_cell("class", escape(at.link_class)),
               words_cell("ranks", fmt::format("{}", fmt::join(at.members, ", "))),
               words_cell("latency", escape(latency)),
               {"bandwidth", factor}});
  }
  return table;
}

TitledTable ceiling_table(const results::CalibrationData& calibration) {
  TitledTable table{"best multiplication of each type: what MFU is read against"};
  for (const GemmCeiling& at : calibration.ceilings) {
    table.add({words_cell("type", escape(at.dtype)),
               words_cell("caches", escape(at.cache)),
               {"FLOP/s", rate_cell(at.rate)},
               {"m", count_cell(at.m)},
               {"n", count_cell(at.n)},
               {"k", count_cell(at.k)},
               {"batch", count_cell(at.batch)},
               {"error", percent(at.error)},
               words_cell("", escape(at.labels))});
  }
  return table;
}

}  // namespace

std::vector<TitledTable> pair_tables(const PointReport& point) {
  const microbench::BenchReport& bench = *point.bench;
  std::vector<TitledTable> tables;
  if (!bench.pairs.empty()) {
    tables = matrices(point);
    tables.push_back(class_table(bench));
  }
  const auto is_other = [](const results::RowData& row) {
    return text_of(row, "op") == "p2p" && !is_pair_kind(text_of(row, "kind"));
  };
  const auto cells = [](const microbench::RowReport& row) -> std::vector<Cell> {
    return {text_of_row("pattern", row, "kind"),
            text_of_row("class", row, "class"),
            {"moved", size_cell(number_of(*row.data, "bytes"))},
            {"time", time_cell(row)},
            {"±95%", interval_cell(row)},
            {"bandwidth", bandwidth_cell(row.bandwidth)}};
  };
  const auto title = [](const results::RowData&) { return "ranks at once"; };
  std::ranges::move(row_tables(bench, is_other, title, cells, 3), std::back_inserter(tables));
  return tables;
}

std::vector<TitledTable> calibration_tables(const RunReport& report) {
  const results::CalibrationData& calibration = report.calibration;
  std::vector<TitledTable> tables{curve_table(calibration), growth_table(calibration),
                                  ceiling_table(calibration)};
  std::erase_if(tables, [](const TitledTable& table) { return table.rows.empty(); });
  return tables;
}

}  // namespace isoscale::analysis::render
