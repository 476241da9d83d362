// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/inference.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "analysis/render/bench_tables.hpp"
#include "analysis/render/json_values.hpp"
#include "analysis/render/text.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

void add_row(Inference& at, const RowReport& row) {
  const results::RowData& data = *row.data;
  fill_in(at.dtype, text_of(data, "dtype"));
  fill_in(at.prompt, number_of(data, "prompt"));
  fill_in(at.output, number_of(data, "output"));
  fill_in(at.replicas, number_of(data, "replicas"));
  fill_in(at.cache_bytes, number_of(data, "cache_bytes"));
  const std::string part = text_of(data, "part");
  const bool is_ok = data.status == results::PointStatus::ok;
  if (!is_ok) {
    fill_in(at.failure, fmt::format("{} {}: {}", part, results::name(data.status), data.reason));
  }
  if (part == "prefill") {
    at.prefill = &data;
    if (is_ok) at.ttft = row.time;
  } else if (part == "decode") {
    at.decode = &data;
    if (is_ok) at.tpot = row.time;
  }
}

void add_rates(Inference& at) {
  if (!at.tpot || !(at.tpot->median > 0) || !at.batch || !at.replicas) return;
  at.tokens_per_second = *at.replicas * *at.batch / at.tpot->median;
  const int ranks = at.point->data->ranks;
  if (ranks > 0) at.tokens_per_second_per_rank = *at.tokens_per_second / ranks;
}

void add_point(const PointReport& point, std::vector<Inference>& all) {
  const std::size_t begin = all.size();
  for (const RowReport& row : point.bench->rows) {
    if (text_of(*row.data, "op") != "infer") continue;
    const std::optional<double> batch = number_of(*row.data, "batch");
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
    auto place = std::find_if(first, all.end(),
                              [&](const Inference& known) { return known.batch == batch; });
    if (place == all.end()) {
      all.push_back({.point = &point, .batch = batch});
      place = all.end() - 1;
    }
    add_row(*place, row);
  }
  for (std::size_t i = begin; i < all.size(); ++i) add_rates(all[i]);
}

bool is_measured(const Inference& at) {
  return at.point->data->status == results::PointStatus::ok && at.tpot &&
         at.tokens_per_second_per_rank;
}

bool dominates(const Inference& a, const Inference& b) {
  const double a_time = a.tpot->median, b_time = b.tpot->median;
  const double a_rate = *a.tokens_per_second_per_rank, b_rate = *b.tokens_per_second_per_rank;
  return a_time <= b_time && a_rate >= b_rate && (a_time < b_time || a_rate > b_rate);
}

std::string tokens_cell(std::optional<double> rate) {
  return rate ? fmt::format("{:.4g}", *rate) : std::string{undefined};
}

std::string median_cell(const std::optional<statistics::Estimate>& time) {
  return time_cell(time ? std::optional{time->median} : std::nullopt);
}

std::string width_cell(const std::optional<statistics::Estimate>& time,
                       const results::RowData* row) {
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

/// Returns the mean FLOP/s of a rank; the row's FLOP are over all calls and ranks.
std::optional<double> rate_of(const RowReport& row, int ranks) {
  const std::optional<double> flop = number_of(*row.data, "flop");
  const double calls = number_of(*row.data, "tokens").value_or(1);
  if (!flop || !row.time || !(row.time->median > 0) || !(calls > 0) || ranks < 1) {
    return std::nullopt;
  }
  return *flop / calls / row.time->median / ranks;
}

Json time_json(const std::optional<statistics::Estimate>& time) {
  const auto of = [&](double statistics::Estimate::*member) {
    return number_or_null(time ? std::optional{*time.*member} : std::nullopt);
  };
  return {{"median", of(&statistics::Estimate::median)},
          {"lower", number_or_null(time ? time->lower : std::nullopt)},
          {"upper", number_or_null(time ? time->upper : std::nullopt)},
          {"min", of(&statistics::Estimate::minimum)},
          {"max", of(&statistics::Estimate::maximum)},
          {"plays", time ? time->samples : 0}};
}

/// Returns the status of the first row that is not ok, if there is one.
std::string status_of(const Inference& at) {
  for (const results::RowData* const row : {at.prefill, at.decode}) {
    if (row != nullptr && row->status != results::PointStatus::ok) {
      return std::string{results::name(row->status)};
    }
  }
  return std::string{results::name(results::PointStatus::ok)};
}

Json inference_json(const Inference& at) {
  const auto of = [&](const results::RowData* row, const char* key) {
    return count_or_null(row == nullptr ? std::nullopt : number_of(*row, key));
  };
  return {{"op", "infer"},
          {"dtype", text_or_null(at.dtype)},
          {"batch", count_or_null(at.batch)},
          {"prompt", count_or_null(at.prompt)},
          {"output", count_or_null(at.output)},
          {"replicas", count_or_null(at.replicas)},
          {"groups", of(at.decode, "groups")},
          {"ttft", time_json(at.ttft)},
          {"tpot", time_json(at.tpot)},
          {"tokens_per_second", number_or_null(at.tokens_per_second)},
          {"tokens_per_second_per_rank", number_or_null(at.tokens_per_second_per_rank)},
          {"cache_bytes", count_or_null(at.cache_bytes)},
          {"prefill_flop", of(at.prefill, "flop")},
          {"decode_flop", of(at.decode, "flop")},
          {"decode_position", of(at.decode, "position")},
          {"decode_tokens", of(at.decode, "tokens")},
          {"on_frontier", at.on_frontier},
          {"status", status_of(at)},
          {"reason", text_or_null(at.failure)}};
}

}  // namespace

std::string question_of(const Inference& at) {
  const results::PointData& data = *at.point->data;
  const auto vocabulary = data.options.find("vocabulary");
  const bool has_vocabulary = vocabulary == data.options.end() || vocabulary->second != "off";
  return escape(fmt::format("{}, {}, prompt {}, output {}{}", data.model, at.dtype,
                            count_cell(at.prompt), count_cell(at.output),
                            has_vocabulary ? "" : ", without vocabulary"));
}

std::vector<Inference> inferences_of(const RunReport& report) {
  std::vector<Inference> all;
  for (const PointReport& point : report.benches) {
    if (point.bench) add_point(point, all);
  }
  std::map<std::string, std::vector<Inference*>> questions;
  for (Inference& at : all) questions[question_of(at)].push_back(&at);
  for (const auto& [question, same] : questions) mark_frontier(same);
  return all;
}

void mark_frontier(std::span<Inference* const> all) {
  for (Inference* const one : all) {
    one->on_frontier = is_measured(*one) && std::ranges::none_of(all, [&](const Inference* other) {
                         return is_measured(*other) && dominates(*other, *one);
                       });
  }
}

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

// The following functions are for the machine-readable reports, JSON and CSV.

void add_inferences_json(std::span<const Inference> all, const PointReport& point, Json& object) {
  for (const Inference& at : all) {
    if (at.point == &point) object["rows"].push_back(inference_json(at));
  }
}

std::vector<CsvCell> inference_cells(std::span<const Inference> all, const results::RowData* row) {
  std::vector<CsvCell> cells;
  for (const char* key : {"prompt", "output", "position", "tokens", "replicas", "cache_bytes"}) {
    cells.emplace_back(key, number_cell(row == nullptr ? std::nullopt : number_of(*row, key)));
  }
  const auto found = row == nullptr ? all.end() : std::ranges::find(all, row, &Inference::decode);
  const bool is_decode = found != all.end();
  const Inference nothing;
  const Inference& at = is_decode ? *found : nothing;
  cells.emplace_back("tokens_per_second", number_cell(at.tokens_per_second));
  cells.emplace_back("tokens_per_second_per_rank", number_cell(at.tokens_per_second_per_rank));
  cells.emplace_back("on_frontier", !is_decode ? "" : at.on_frontier ? "yes" : "no");
  return cells;
}

}  // namespace isoscale::analysis
