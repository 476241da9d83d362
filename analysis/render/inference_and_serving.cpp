// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "analysis/experiment_and_machine_identity.hpp"
#include "analysis/render/json_values.hpp"
#include "analysis/render/microbench_tables.hpp"

namespace isoscale::analysis::render {
namespace {

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
  const auto batch_of = [](const auto& row) { return number_of(*row.data, "batch"); };
  for (const auto& [batch, rows] : grouped(rows_of(point, "infer"), batch_of)) {
    Inference& at = all.emplace_back(Inference{.point = &point, .batch = batch});
    for (const microbench::RowReport* const row : rows) add_row(at, *row);
    add_rates(at);
  }
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

/// Marks the Pareto frontier (see Inference::on_frontier). Entries without times or from points
/// that are not ok are ignored.
void mark_frontier(std::span<Inference* const> all) {
  for (Inference* const one : all) {
    one->on_frontier = is_measured(*one) && std::ranges::none_of(all, [&](const Inference* other) {
                         return is_measured(*other) && dominates(*other, *one);
                       });
  }
}

/// Returns a rank's mean FLOP/s. The row has the FLOP of all calls on all ranks, and the number of
/// calls, if not 1, as `tokens`.
std::optional<double> rate_of(const microbench::RowReport& row, int ranks) {
  const std::optional<double> flop = number_of(*row.data, "flop");
  const double calls = number_of(*row.data, "tokens").value_or(1);
  if (!flop || !row.time || !(row.time->median > 0) || !(calls > 0) || ranks < 1) {
    return std::nullopt;
  }
  return *flop / calls / row.time->median / ranks;
}

/// Returns the status of the prefill row unless it is ok or missing, else that of the decode row.
std::string_view status_of(const Inference& at) {
  results::PointStatus status = results::PointStatus::ok;
  for (const results::RowData* const row : {at.decode, at.prefill}) {
    if (row != nullptr && row->status != results::PointStatus::ok) status = row->status;
  }
  return results::name(status);
}

/// Returns the whole number that a row stores under a key; null if there is none.
Value stored_count(const results::RowData* row, const char* key) {
  return row == nullptr ? Value() : count_or_null(number_of(*row, key));
}

constexpr std::array<const char*, 4> times{"latency", "ttft", "tpot", "queueing"};
constexpr std::array<const char*, 4> quantiles{"median", "p90", "p99", "max"};

/// True if the number under this key is a count, which is shown as an integer.
bool is_count(std::string_view key) {
  constexpr std::array<std::string_view, 13> counts{
      "prompt", "output",  "max_batch", "burst",   "replicas", "requests", "backlog",
      "tokens", "batches", "replica",   "request", "batch",    "filled"};
  return std::ranges::find(counts, key) != counts.end();
}

/// True if the key is one of `times` with a quantile, such as "ttft_p90".
bool is_quantile(const std::string& key) {
  return std::ranges::any_of(times, [&](std::string_view time) {
    return key.starts_with(time) && key.size() > time.size() && key[time.size()] == '_';
  });
}

/// Returns the rows of the workload `serve` whose text "part" is `part`, for example "rate".
std::vector<const microbench::RowReport*> serve_rows(const PointReport& point,
                                                     std::string_view part) {
  std::vector<const microbench::RowReport*> rows = rows_of(point, "serve");
  std::erase_if(rows, [part](const auto* row) { return text_of(*row->data, "part") != part; });
  return rows;
}

/// Returns the serve rows that describe a request rate each, in ascending order of the rate.
std::vector<const microbench::RowReport*> rates_of(const PointReport& point) {
  auto rates = serve_rows(point, "rate");
  std::ranges::stable_sort(
      rates, {}, [](const auto* row) { return number_of(*row->data, "rate").value_or(0); });
  return rates;
}

}  // namespace

Metrics<Inference> inference_metrics() {
  using enum Unit;
  using I = Inference;
  static constexpr Metric<Inference> all[] = {
      {"~mesh", "mesh", text,
       [](const Inference& at) -> Value {
         const std::string mesh = mesh::to_string(at.point->data->mesh);
         return mesh == "1" ? std::string{"one rank"} : mesh;
       }},
      {"~ranks", "ranks", count, [](auto& at) { return Value(at.point->data->ranks); }},
      {"dtype", "type", text, member<&I::dtype>},
      {"batch", "batch", count, whole<&I::batch>},
      {"prompt", "prompt", count, whole<&I::prompt>},
      {"output", "output", count, whole<&I::output>},
      {"replicas", "replicas", count, whole<&I::replicas>},
      {"groups", "groups", count, [](auto& at) { return stored_count(at.decode, "groups"); }},
      {"ttft", "TTFT", seconds, member<&I::ttft>,
       "time to the first tokens of all samples of a batch", 0, Keep::value_only},
      {"~ttft_interval", "±95%", share,
       [](auto& at) { return value_json(interval_cell(at.prefill, at.ttft)); }},
      {"tpot", "TPOT", seconds, member<&I::tpot>,
       "time per output token, in the middle of the output", 0, Keep::value_only},
      {"~tpot_interval", "±95%", share,
       [](auto& at) { return value_json(interval_cell(at.decode, at.tpot)); }},
      {"tokens_per_second", "tokens/s", digits, member<&I::tokens_per_second>},
      {"tokens_per_second_per_rank", "tokens/s/rank", digits,
       member<&I::tokens_per_second_per_rank>},
      {"cache_bytes", "cache", bytes, whole<&I::cache_bytes>},
      {"prefill_flop", "FLOP of prefill", flop,
       [](auto& at) { return stored_count(at.prefill, "flop"); }},
      {"decode_flop", "FLOP of decode", flop,
       [](auto& at) { return stored_count(at.decode, "flop"); }},
      {"decode_position", "position", count,
       [](auto& at) { return stored_count(at.decode, "position"); }},
      {"decode_tokens", "tokens", count,
       [](auto& at) { return stored_count(at.decode, "tokens"); }},
      {"on_frontier", "on frontier", text, member<&I::on_frontier>},
      {"~frontier", "frontier", text,
       [](auto& at) { return value_json(at.on_frontier ? "*" : ""); }},
      {"status", "status", text, [](auto& at) { return Value(status_of(at)); }},
      {"reason", "reason", text, member<&I::failure>},
  };
  return all;
}

std::string question_of(const Inference& at) {
  const results::PointData& data = *at.point->data;
  return fmt::format("{}, {}, prompt {}, output {}{}", data.model, at.dtype,
                     figure(at.prompt, Unit::count), figure(at.output, Unit::count),
                     option_of(data, "vocabulary") == "off" ? ", without vocabulary" : "");
}

std::vector<Inference> inferences_of(const RunReport& report) {
  std::vector<Inference> all;
  for (const PointReport& point : report.benches) add_point(point, all);
  std::map<std::string, std::vector<Inference*>> questions;
  for (Inference& at : all) questions[question_of(at)].push_back(&at);
  for (const auto& [question, same] : questions) mark_frontier(same);
  return all;
}

std::vector<DocumentTable> inference_tables(const RunReport& report) {
  const std::vector<Inference> all = inferences_of(report);
  std::vector<DocumentTable> tables;
  for (const auto& [question, same] : grouped(pointers_to(all), question_of)) {
    DocumentTable& table = tables.emplace_back(
        table_of<Inference>(inference_metrics(), same,
                            "mesh ranks batch ttft ttft_interval tpot tpot_interval "
                            "tokens_per_second tokens_per_second_per_rank cache_bytes frontier"));
    table.title = "latency and throughput: " + question;
    for (const Inference* const at : same) table.reasons.push_back(at->failure);
  }
  return tables;
}

DocumentTable infer_part_table(const PointReport& point) {
  const std::vector<const microbench::RowReport*> parts = rows_of(point, "infer");
  DocumentTable table = row_table(parts, "inference: parts", "batch part | time interval");
  std::vector<Value> rates;
  for (const microbench::RowReport* const row : parts) {
    rates.push_back(value_json(rate_of(*row, point.data->ranks)));
  }
  add_column(table, {"", "FLOP/s/rank", Unit::flop_rate}, std::move(rates));
  return table;
}

void add_inferences_json(std::span<const Inference> all, const PointReport& point, Json& object) {
  for (const Inference& at : all) {
    if (at.point != &point) continue;
    object["rows"].push_back({{"op", "infer"}});
    object["rows"].back().update(object_of<Inference>(inference_metrics(), at));
  }
}

std::vector<DocumentTable> serve_tables(const PointReport& point) {
  const std::vector<const microbench::RowReport*> rates = rates_of(point);
  if (rates.empty()) return {};
  const results::RowData& first = *rates.front()->data;
  DocumentTable of_rates = table_of<microbench::RowReport>(
      row_metrics(), rates,
      "rate offered achieved requests latency_median_seconds latency_p90_seconds "
      "latency_p99_seconds latency_max_seconds ttft_median_seconds ttft_p99_seconds "
      "tpot_median_seconds queueing_median_seconds queueing_p99_seconds utilisation imbalance "
      "requests_per_batch backlog saturated highest");
  of_rates.title = fmt::format("serving: {} arrivals, dispatched {}, at most {} at once",
                               text_of(first, "arrivals"), text_of(first, "dispatch"),
                               figure(number_of(first, "max_batch"), Unit::count));
  const auto rate_of_row = [](const auto* row) { return number_of(*row->data, "rate"); };
  const auto requests = serve_rows(point, "request");
  const auto kept = requests.empty() ? std::nullopt : rate_of_row(requests.front());
  auto replicas = serve_rows(point, "replica");
  std::erase_if(replicas, [&](const auto* row) { return !kept || rate_of_row(row) != kept; });
  // With few arrivals, the rate at which requests really arrived differs from the one asked for.
  const auto asked = std::ranges::find(rates, kept, rate_of_row);
  const auto arrived = asked == rates.end() ? std::nullopt : number_of(*(*asked)->data, "offered");
  return {std::move(of_rates), row_table(replicas,
                                         fmt::format("replicas where {} requests/s arrived",
                                                     figure(arrived, Unit::digits)),
                                         "replica requests batches busy_seconds utilisation")};
}

std::vector<std::string> serve_key(const RunReport& report) {
  const bool any = std::ranges::any_of(
      report.benches, [](const PointReport& point) { return !rates_of(point).empty(); });
  if (!any) return {};
  return {
      "Latency: arrival to last token, the median; TTFT: arrival to first token; queueing: arrival "
      "to the beginning of the request's batch; TPOT: from token to token. A 99th percentile needs "
      "100 requests.",
      "Utilisation: share of the time with a batch, mean over replicas; imbalance: that of the "
      "busiest over the mean.",
      "Asked: the mean rate of the arrival process; arrived: the rate of its actual arrivals.",
      "Saturated: requests pile up, or are later than the slo; highest (*): the highest rate tried "
      "that was sustained."};
}

Json serve_json(const results::RowData& row) {
  Json object = Json::object();
  for (const auto& [key, value] : row.text) {
    if (key != "saturated" && key != "highest") object[key] = value;
  }
  for (const auto& [key, value] : row.number) {
    if (is_quantile(key)) continue;
    // All times in reports are in seconds, so the names of times there lack the unit.
    constexpr std::string_view suffix = "_seconds";
    const bool is_time = key.ends_with(suffix);
    Json& number = object[is_time ? key.substr(0, key.size() - suffix.size()) : key];
    number = is_count(key) ? count_or_null(value) : number_or_null(value);
  }
  if (text_of(row, "part") != "rate") return object;
  for (const char* const time : times) {
    Json of_time = Json::object();
    for (const char* const quantile : quantiles) {
      of_time[quantile] =
          number_or_null(number_of(row, fmt::format("{}_{}_seconds", time, quantile)));
    }
    object[time] = std::move(of_time);
  }
  object["rate_arrived"] = number_or_null(number_of(row, "offered"));
  object["saturated"] = text_of(row, "saturated") == "yes";
  object["highest"] = text_of(row, "highest") == "yes";
  return object;
}

}  // namespace isoscale::analysis::render
