// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "analysis/render/text_escape.hpp"
#include "analysis/rows/bench_tables.hpp"
#include "analysis/rows/infer.hpp"

namespace isoscale::analysis {
namespace {

std::string tokens_cell(std::optional<double> rate) {
  return rate ? fmt::format("{:.4g}", *rate) : std::string{undefined};
}

std::string median_cell(const std::optional<Estimate>& time) {
  return time_cell(time ? std::optional{time->median} : std::nullopt);
}

std::string width_cell(const std::optional<Estimate>& time, const results::RowData* row) {
  RowReport report;
  report.data = row;
  report.time = time;
  return interval_cell(report);
}

Row row_of(const Inference& at) {
  const results::PointData& data = *at.point->data;
  const std::string mesh = mesh::to_string(data.mesh);
  return {.cells = {escape(mesh == "1" ? "one rank" : mesh), std::to_string(data.ranks),
                    count_cell(at.batch), median_cell(at.ttft), width_cell(at.ttft, at.prefill),
                    median_cell(at.tpot), width_cell(at.tpot, at.decode),
                    tokens_cell(at.tokens_per_second), tokens_cell(at.tokens_per_second_per_rank),
                    size_cell(at.cache_bytes), at.on_frontier ? "*" : ""},
          .tail = escape(at.failure)};
}

/// FLOP/s of a rank, the mean over them: the row's FLOP are of all calls and ranks.
std::optional<double> rate_of(const RowReport& row, int ranks) {
  const std::optional<double> flop = number_of(*row.data, "flop");
  const double calls = number_of(*row.data, "tokens").value_or(1);
  if (!flop || !row.time || !(row.time->median > 0) || !(calls > 0) || ranks < 1) {
    return std::nullopt;
  }
  return *flop / calls / row.time->median / ranks;
}

}  // namespace

std::vector<TitledTable> inference_tables(const RunReport& report) {
  std::vector<TitledTable> tables;
  for (const Inference& at : inferences_of(report)) {
    const std::string title = "latency and throughput: " + question_of(at);
    auto place = std::ranges::find(tables, title, &TitledTable::title);
    if (place == tables.end()) {
      tables.push_back({.title = title,
                        .columns = {{"mesh", Align::left},
                                    {"ranks"},
                                    {"batch"},
                                    {"TTFT"},
                                    {"±95%"},
                                    {"TPOT"},
                                    {"±95%"},
                                    {"tokens/s"},
                                    {"tokens/s/rank"},
                                    {"cache"},
                                    {"frontier", Align::left}},
                        .rows = {}});
      place = tables.end() - 1;
    }
    place->rows.push_back(row_of(at));
  }
  return tables;
}

std::vector<TitledTable> infer_part_tables(const PointReport& point) {
  TitledTable table{
      .title = "inference: parts",
      .columns = {{"batch"}, {"part", Align::left}, {"time"}, {"±95%"}, {"FLOP/s/rank"}},
      .rows = {}};
  if (!point.bench) return {};
  for (const RowReport& row : point.bench->rows) {
    if (text_of(*row.data, "op") != "infer") continue;
    Row cells{
        .cells = {count_cell(number_of(*row.data, "batch")), escape(text_of(*row.data, "part"))},
        .tail = row_excuse(row)};
    if (cells.tail.empty()) {
      cells.cells.insert(cells.cells.end(), {time_cell(row), interval_cell(row),
                                             rate_cell(rate_of(row, point.data->ranks))});
    }
    table.rows.push_back(std::move(cells));
  }
  if (table.rows.empty()) return {};
  return {std::move(table)};
}

}  // namespace isoscale::analysis
