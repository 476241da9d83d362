// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/serve/rows.hpp"

#include <algorithm>
#include <string>

namespace isoscale::runner::serve {
namespace {

using results::RowData;
using workloads::serve::Outcome;
using workloads::serve::Quantiles;
using workloads::serve::ReplicaUse;
using workloads::serve::Summary;

void put(RowData& row, const std::string& key, std::optional<double> value) {
  if (value) row.number[key] = *value;
}

void put(RowData& row, const std::string& key, const Quantiles& quantiles) {
  put(row, key + "_median_seconds", quantiles.median);
  put(row, key + "_p90_seconds", quantiles.p90);
  put(row, key + "_p99_seconds", quantiles.p99);
  put(row, key + "_max_seconds", quantiles.max);
}

RowData row_of(const char* part, const TrialResult& trial) {
  RowData row;
  row.text = {{"op", "serve"}, {"part", part}};
  row.number = {{"rate", trial.rate}};
  return row;
}

void put_setting(RowData& row, const Offer& offer) {
  const workloads::serve::Setting& setting = offer.setting;
  const workloads::OptionReader options{workloads::serve::option_table(), offer.request.options};
  row.text["dtype"] = std::string{workloads::name(offer.request.precision)};
  row.text["arrivals"] = options.text("arrivals");
  row.text["dispatch"] = options.text("dispatch");
  row.text["lengths"] = options.text("lengths");
  row.number["prompt"] = static_cast<double>(setting.prompt);
  row.number["output"] = static_cast<double>(setting.output);
  row.number["max_batch"] = static_cast<double>(setting.max_batch);
  row.number["burst"] = static_cast<double>(setting.burst);
  put(row, "slo_seconds", setting.slo);
}

void put_use(RowData& row, const Summary& summary) {
  double sum = 0, batches = 0, requests = 0;
  for (const ReplicaUse& use : summary.replicas) {
    sum += use.utilisation;
    batches += static_cast<double>(use.batches);
    requests += static_cast<double>(use.requests);
  }
  const auto replicas = static_cast<double>(summary.replicas.size());
  const auto [least, most] =
      std::ranges::minmax_element(summary.replicas, {}, &ReplicaUse::utilisation);
  row.number["replicas"] = replicas;
  row.number["utilisation"] = sum / replicas;
  row.number["utilisation_min"] = least->utilisation;
  row.number["utilisation_max"] = most->utilisation;
  row.number["imbalance"] = summary.imbalance;
  if (batches > 0) row.number["requests_per_batch"] = requests / batches;
}

}  // namespace

RowData rate_row(const Offer& offer, const TrialResult& trial) {
  const Summary& summary = trial.summary;
  RowData row = row_of("rate", trial);
  put_setting(row, offer);
  row.text["saturated"] = trial.is_saturated ? "yes" : "no";
  row.number["requests"] = static_cast<double>(trial.outcomes.size());
  row.number["offered"] = summary.offered;
  row.number["achieved"] = summary.achieved;
  double tokens = 0;
  for (const Outcome& one : trial.outcomes) tokens += static_cast<double>(one.tokens);
  if (summary.time > 0) row.number["tokens_per_second"] = tokens / summary.time;
  put(row, "latency", summary.latency);
  put(row, "ttft", summary.ttft);
  put(row, "tpot", summary.tpot);
  put(row, "queueing", summary.queueing);
  row.number["duration_seconds"] = summary.time;
  row.number["backlog"] = static_cast<double>(summary.backlog);
  row.number["backlog_growth"] = summary.backlog_growth;
  put_use(row, summary);
  for (const Outcome& one : trial.outcomes) row.call_times.push_back(one.latency());
  return row;
}

std::vector<RowData> replica_rows(const TrialResult& trial) {
  std::vector<RowData> rows;
  for (const ReplicaUse& use : trial.summary.replicas) {
    RowData row = row_of("replica", trial);
    row.number["replica"] = static_cast<double>(rows.size());
    row.number["requests"] = static_cast<double>(use.requests);
    row.number["batches"] = static_cast<double>(use.batches);
    row.number["busy_seconds"] = use.busy;
    row.number["utilisation"] = use.utilisation;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<RowData> request_rows(const TrialResult& trial) {
  std::vector<RowData> rows;
  for (const Outcome& one : trial.outcomes) {
    if (rows.size() == most_request_rows) break;
    RowData row = row_of("request", trial);
    row.number["request"] = static_cast<double>(rows.size());
    row.number["replica"] = static_cast<double>(one.replica);
    row.number["batch"] = static_cast<double>(one.batch);
    row.number["filled"] = static_cast<double>(one.filled);
    row.number["tokens"] = static_cast<double>(one.tokens);
    row.number["arrival_seconds"] = one.arrival;
    row.number["dispatched_seconds"] = one.dispatched;
    row.number["start_seconds"] = one.started;
    row.number["first_seconds"] = one.first;
    row.number["end_seconds"] = one.finished;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace isoscale::runner::serve
