// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/rows/infer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/render/text_escape.hpp"
#include "analysis/rows/bench_tables.hpp"

namespace isoscale::analysis {
namespace {

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

}  // namespace isoscale::analysis
