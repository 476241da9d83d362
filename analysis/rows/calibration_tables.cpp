// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "analysis/render/text_escape.hpp"
#include "analysis/rows/bench_tables.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

using results::CalibrationCurve;
using results::CalibrationGrowth;
using results::GemmCeiling;

/// "4.1 us (±2%)" of a fitted value; the wider half of its interval.
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
  // On one node all links are inside it.
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

std::vector<TitledTable> calibration_tables(const RunReport& report) {
  const results::CalibrationData& calibration = report.calibration;
  std::vector<TitledTable> tables;
  if (!calibration.curves.empty()) tables.push_back(curve_table(calibration));
  if (!calibration.growth.empty()) tables.push_back(growth_table(calibration));
  if (!calibration.ceilings.empty()) tables.push_back(ceiling_table(calibration));
  return tables;
}

}  // namespace isoscale::analysis
