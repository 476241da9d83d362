// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/index/index_json.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/render/json_values.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

Json experiment_json(const IndexExperiment& of) {
  const Experiment& experiment = of.experiment;
  return {
      {"fingerprint", of.fingerprint},
      {"workload", experiment.workload},
      {"model", experiment.model},
      {"dtype", experiment.dtype},
      {"scaling", experiment.scaling},
      {"placement", experiment.placement},
      {"options", Json(experiment.options)},
      {"micro_benchmark", of.is_bench},
      {"points", {{"ok", of.ok}, {"failed", of.failed}, {"skipped", of.skipped}}},
      {"ranks", number_or_null(of.ranks)},
      {"nodes", number_or_null(of.nodes)},
      {"throughput", {{"value", number_or_null(of.throughput)}, {"unit", text_or_null(of.unit)}}},
      {"baseline", number_or_null(of.baseline)},
      {"efficiency", number_or_null(of.efficiency)},
      {"verified", number_or_null(of.verified)},
      {"labels", Json(of.labels)}};
}

Json per_node_json(const IndexRun& run) {
  if (run.most_per_node == 0) return {};
  return {{"fewest", run.fewest_per_node}, {"most", run.most_per_node}};
}

Json run_json(const IndexRun& run, const std::string& machine) {
  Json experiments = Json::array();
  for (const IndexExperiment& of : run.experiments) experiments.push_back(experiment_json(of));
  return {{"id", run.id},
          {"file", run.file},
          {"created", run.created},
          {"ended", text_or_null(run.ended)},
          {"isoscale_version", run.isoscale_version},
          {"git_hash", text_or_null(run.git_hash)},
          {"device", run.device},
          {"status", run.complete ? "complete" : "partial"},
          {"ranks", run.ranks},
          {"nodes", run.nodes},
          {"ranks_per_node", per_node_json(run)},
          {"machine", machine},
          {"hosts", Json(run.hosts)},
          {"cpu", text_or_null(run.cpu)},
          {"gpu", text_or_null(run.gpu)},
          {"cores", number_or_null(run.cores)},
          {"experiments", experiments}};
}

Json trend_json(const Index& index, const IndexTrend& trend) {
  Json runs = Json::array();
  for (const std::size_t at : trend.runs) runs.push_back(index.runs[at].id);
  return {{"fingerprint", trend.fingerprint},
          {"title", trend.title},
          {"ranks", trend.ranks},
          {"unit", text_or_null(trend.unit)},
          {"runs", runs},
          {"from", index.runs[trend.runs.front()].created},
          {"to", index.runs[trend.runs.back()].created},
          {"first", trend.first},
          {"last", trend.last},
          {"median", trend.median},
          {"min", trend.minimum},
          {"max", trend.maximum},
          {"spread", number_or_null(trend.spread)}};
}

}  // namespace

Json index_json(const Index& index) {
  std::vector<std::string> machines(index.runs.size());
  for (const IndexMachine& machine : index.machines) {
    for (const std::size_t at : machine.runs) machines[at] = machine.name;
  }
  Json rows = Json::array();
  for (std::size_t i = 0; i < index.runs.size(); ++i) {
    rows.push_back(run_json(index.runs[i], machines[i]));
  }
  return rows;
}

Json machines_json(const Index& index) {
  Json rows = Json::array();
  for (const IndexMachine& machine : index.machines) {
    Json runs = Json::array(), trends = Json::array();
    for (const std::size_t at : machine.runs) runs.push_back(index.runs[at].id);
    for (const IndexTrend& trend : machine.trends) trends.push_back(trend_json(index, trend));
    rows.push_back({{"name", machine.name},
                    {"hosts", Json(machine.hosts)},
                    {"runs", runs},
                    {"throughput_over_time", trends}});
  }
  return rows;
}

Json unreadable_json(const Index& index) {
  Json rows = Json::array();
  for (const Unreadable& file : index.unreadable) {
    rows.push_back({{"file", file.file}, {"reason", file.reason}});
  }
  return rows;
}

Json bare_runs_json(const Index& index) {
  Json rows = Json::array();
  for (const IndexRun& run : index.runs) {
    rows.push_back({{"id", run.id},
                    {"file", run.file},
                    {"created", run.created},
                    {"isoscale_version", run.isoscale_version},
                    {"device", run.device},
                    {"ranks", run.ranks},
                    {"nodes", run.nodes},
                    {"status", run.complete ? "complete" : "partial"}});
  }
  return rows;
}

}  // namespace isoscale::analysis
