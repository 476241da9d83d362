// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "analysis/render/bench_tables.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/inference.hpp"
#include "analysis/render/json_values.hpp"
#include "analysis/render/text.hpp"

namespace isoscale::analysis::render {
namespace {

using results::RowData;

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 4> times{"latency", "ttft", "tpot", "queueing"};
constexpr std::array<const char*, 4> quantiles{"median", "p90", "p99", "max"};

bool is_serve(const RowData& row) { return text_of(row, "op") == "serve"; }
bool is_rate(const RowData& row) { return text_of(row, "part") == "rate"; }

/// True if the number under this key is a count, which is shown as an integer.
bool is_count(std::string_view key) {
  constexpr std::array<std::string_view, 13> counts{
      "prompt", "output",  "max_batch", "burst",   "replicas", "requests", "backlog",
      "tokens", "batches", "replica",   "request", "batch",    "filled"};
  return std::ranges::find(counts, key) != counts.end();
}

/// The suffix of the keys of stored times.
constexpr std::string_view seconds_suffix = "_seconds";

std::optional<double> seconds_of(const RowData& row, const std::string& key) {
  return number_of(row, key + std::string{seconds_suffix});
}

/// Returns the key without `seconds_suffix`, since all times in reports are in seconds.
std::string name_of(const std::string& key) {
  return key.ends_with(seconds_suffix) ? key.substr(0, key.size() - seconds_suffix.size()) : key;
}

/// True if the key is a quantile of one of `times`.
bool is_quantile(const std::string& key) {
  return std::ranges::any_of(times, [&](std::string_view time) {
    return key.starts_with(time) && key.size() > time.size() && key[time.size()] == '_';
  });
}

std::string number_text(std::optional<double> value) {
  return value && std::isfinite(*value) ? fmt::format("{:.4g}", *value) : std::string{undefined};
}

std::vector<const RowData*> rates_of(const PointReport& point) {
  std::vector<const RowData*> rates;
  if (!point.bench) return rates;
  for (const microbench::RowReport& row : point.bench->rows) {
    if (is_serve(*row.data) && is_rate(*row.data)) rates.push_back(row.data);
  }
  std::ranges::stable_sort(rates, {},
                           [](const RowData* row) { return number_of(*row, "rate").value_or(0); });
  return rates;
}

TitledTable rates_table(const std::vector<const RowData*>& rates) {
  const RowData& first = *rates.front();
  TitledTable table{escape(fmt::format("serving: {} arrivals, dispatched {}, at most {} at once",
                                       text_of(first, "arrivals"), text_of(first, "dispatch"),
                                       count_cell(number_of(first, "max_batch"))))};
  for (const RowData* const row : rates) {
    const auto number = [row](const char* key) { return number_text(number_of(*row, key)); };
    const auto time = [row](const char* key) { return time_cell(seconds_of(*row, key)); };
    table.add({{"asked/s", number("rate")},
               {"arrived/s", number("offered")},
               {"achieved/s", number("achieved")},
               {"requests", count_cell(number_of(*row, "requests"))},
               {"latency", time("latency_median")},
               {"p90", time("latency_p90")},
               {"p99", time("latency_p99")},
               {"max", time("latency_max")},
               {"TTFT", time("ttft_median")},
               {"TTFT p99", time("ttft_p99")},
               {"TPOT", time("tpot_median")},
               {"queueing", time("queueing_median")},
               {"queueing p99", time("queueing_p99")},
               {"utilisation", percent(number_of(*row, "utilisation"))},
               {"imbalance", number("imbalance")},
               {"per batch", number("requests_per_batch")},
               {"backlog", count_cell(number_of(*row, "backlog"))},
               words_cell("saturated", escape(text_of(*row, "saturated"))),
               words_cell("highest", text_of(*row, "highest") == "yes" ? "*" : "")});
  }
  return table;
}

/// Returns the request rate for which the point has single requests; absent if there is none.
std::optional<double> kept_rate(const PointReport& point) {
  for (const microbench::RowReport& row : point.bench->rows) {
    if (is_serve(*row.data) && text_of(*row.data, "part") == "request") {
      return number_of(*row.data, "rate");
    }
  }
  return std::nullopt;
}

/// Returns the actual rate of arrivals when `rate` was requested; the two differ if there were few
/// arrivals.
std::optional<double> arrived_rate(const PointReport& point, std::optional<double> rate) {
  for (const RowData* const row : rates_of(point)) {
    if (number_of(*row, "rate") == rate) return number_of(*row, "offered");
  }
  return std::nullopt;
}

std::vector<TitledTable> replica_tables(const PointReport& point) {
  const std::optional<double> rate = kept_rate(point);
  const std::string title =
      fmt::format("replicas where {} requests/s arrived", number_text(arrived_rate(point, rate)));
  const auto is_asked = [rate](const RowData& row) {
    return is_serve(row) && text_of(row, "part") == "replica" && rate &&
           number_of(row, "rate") == rate;
  };
  const auto cells = [](const microbench::RowReport& row) -> std::vector<Cell> {
    const auto number = [&row](const char* key) { return number_of(*row.data, key); };
    return {{"replica", count_cell(number("replica"))},
            {"requests", count_cell(number("requests"))},
            {"batches", count_cell(number("batches"))},
            {"busy", time_cell(number("busy_seconds"))},
            {"utilisation", percent(number("utilisation"))}};
  };
  return row_tables(
      *point.bench, is_asked, [&](const RowData&) { return title; }, cells, std::string::npos);
}

}  // namespace

std::vector<TitledTable> serve_tables(const PointReport& point) {
  const std::vector<const RowData*> rates = rates_of(point);
  if (rates.empty()) return {};
  std::vector<TitledTable> tables = replica_tables(point);
  tables.insert(tables.begin(), rates_table(rates));
  return tables;
}

std::vector<std::string> serve_key(const RunReport& report) {
  const bool any = std::ranges::any_of(
      report.benches, [](const PointReport& point) { return !rates_of(point).empty(); });
  if (!any) return {};
  return {
      "Latency: arrival to last token, the median; TTFT: arrival to first token; queueing: arrival "
      "to the beginning of the request's batch; TPOT: from token to token. A 99th percentile takes "
      "100 requests.",
      "Utilisation: share of the time with a batch, mean over replicas; imbalance: the busiest "
      "over "
      "the mean.",
      "Asked: the mean rate of the arrival process; arrived: the rate of the arrivals that it "
      "gave.",
      "Saturated: requests pile up, or are later than the slo; highest (*): of the rates tried, "
      "sustained."};
}

Json serve_json(const RowData& row) {
  Json object = Json::object();
  for (const auto& [key, value] : row.text) {
    if (key != "saturated" && key != "highest") object[key] = value;
  }
  for (const auto& [key, value] : row.number) {
    if (!is_quantile(key))
      object[name_of(key)] = is_count(key) ? count_or_null(value) : number_or_null(value);
  }
  if (!is_rate(row)) return object;
  for (const char* const time : times) {
    Json of_time = Json::object();
    for (const char* const quantile : quantiles) {
      of_time[quantile] = number_or_null(seconds_of(row, fmt::format("{}_{}", time, quantile)));
    }
    object[time] = std::move(of_time);
  }
  object["rate_arrived"] = number_or_null(number_of(row, "offered"));
  object["saturated"] = text_of(row, "saturated") == "yes";
  object["highest"] = text_of(row, "highest") == "yes";
  return object;
}

}  // namespace isoscale::analysis::render
