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

namespace isoscale::analysis::render {
namespace {

using Json = nlohmann::ordered_json;

void add_row(Inference& at, const microbench::RowReport& row) {
  const results::RowData& data = *row.data;
  microbench::fill_in(at.dtype, text_of(data, "dtype"));
  microbench::fill_in(at.prompt, number_of(data, "prompt"));
  microbench::fill_in(at.output, number_of(data, "output"));
  microbench::fill_in(at.replicas, number_of(data, "replicas"));
  microbench::fill_in(at.cache_bytes, number_of(data, "cache_bytes"));
  const std::string part = text_of(data, "part");
  const bool is_ok = data.status == results::PointStatus::ok;
  if (!is_ok) {
    microbench::fill_in(at.failure,
                        fmt::format("{} {}: {}", part, results::name(data.status), data.reason));
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
  for (const microbench::RowReport& row : point.bench->rows) {
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

std::vector<Cell> cells_of(const Inference& at) {
  microbench::RowReport prefill, decode;
  prefill.data = at.prefill;
  prefill.time = at.ttft;
  decode.data = at.decode;
  decode.time = at.tpot;
  const std::string mesh = mesh::to_string(at.point->data->mesh);
  return {words_cell("mesh", escape(mesh == "1" ? "one rank" : mesh)),
          {"ranks", std::to_string(at.point->data->ranks)},
          {"batch", count_cell(at.batch)},
          {"TTFT", time_cell(prefill)},
          {"±95%", interval_cell(prefill)},
          {"TPOT", time_cell(decode)},
          {"±95%", interval_cell(decode)},
          {"tokens/s", tokens_cell(at.tokens_per_second)},
          {"tokens/s/rank", tokens_cell(at.tokens_per_second_per_rank)},
          {"cache", size_cell(at.cache_bytes)},
          words_cell("frontier", at.on_frontier ? "*" : "")};
}

/// Returns the mean FLOP/s of a rank. The row has the total FLOP of all calls on all ranks.
std::optional<double> rate_of(const microbench::RowReport& row, int ranks) {
  const std::optional<double> flop = number_of(*row.data, "flop");
  const double calls = number_of(*row.data, "tokens").value_or(1);
  if (!flop || !row.time || !(row.time->median > 0) || !(calls > 0) || ranks < 1) {
    return std::nullopt;
  }
  return *flop / calls / row.time->median / ranks;
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
          {"ttft", time_json(at.ttft, "plays")},
          {"tpot", time_json(at.tpot, "plays")},
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
    if (place == tables.end()) place = tables.insert(tables.end(), TitledTable{title});
    place->add(cells_of(at), escape(at.failure));
  }
  return tables;
}

std::vector<TitledTable> infer_part_tables(const PointReport& point) {
  const auto is_part = [](const results::RowData& row) { return text_of(row, "op") == "infer"; };
  const auto cells = [&point](const microbench::RowReport& row) -> std::vector<Cell> {
    return {{"batch", count_cell(number_of(*row.data, "batch"))},
            text_of_row("part", row, "part"),
            {"time", time_cell(row)},
            {"±95%", interval_cell(row)},
            {"FLOP/s/rank", rate_cell(rate_of(row, point.data->ranks))}};
  };
  return row_tables(
      *point.bench, is_part, [](const auto&) { return "inference: parts"; }, cells, 2);
}

void add_inferences_json(std::span<const Inference> all, const PointReport& point, Json& object) {
  for (const Inference& at : all) {
    if (at.point == &point) object["rows"].push_back(inference_json(at));
  }
}

}  // namespace isoscale::analysis::render
