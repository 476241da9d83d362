// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <string>
#include <string_view>
#include <vector>

#include "analysis/catalog/index.hpp"
#include "analysis/render/json_values.hpp"
#include "analysis/render/render.hpp"
#include "analysis/render/render_json.hpp"
#include "analysis/render/text.hpp"

/// Writes an index of runs for programs: as JSON, and as CSV with a line for each run and
/// experiment.
namespace isoscale::analysis::render {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view run_columns =
    "run=id file created ended isoscale_version git_hash device machine cpu gpu cores "
    "hosts=hosts_text run_status=status run_ranks=ranks run_nodes=nodes";
constexpr std::string_view experiment_columns =
    "kind workload model dtype scaling placement options experiment=fingerprint "
    "points_ok=points/ok points_failed=points/failed points_skipped=points/skipped ranks nodes "
    "throughput=throughput/value throughput_unit=throughput/unit baseline efficiency verified "
    "labels";

Json experiment_json(const catalog::IndexExperiment& of) {
  Json object = experiment_head_json(of.experiment);
  object.update(Json{
      {"fingerprint", of.fingerprint},
      {"micro_benchmark", of.is_bench},
      {"points", {{"ok", of.ok}, {"failed", of.failed}, {"skipped", of.skipped}}},
      {"ranks", number_or_null(of.ranks)},
      {"nodes", number_or_null(of.nodes)},
      {"throughput", {{"value", number_or_null(of.throughput)}, {"unit", text_or_null(of.unit)}}},
      {"baseline", number_or_null(of.baseline)},
      {"efficiency", number_or_null(of.efficiency)},
      {"verified", number_or_null(of.verified)},
      {"labels", of.labels}});
  return object;
}

/// Returns the entry of a run, without its experiments.
Json run_json(const catalog::IndexRun& run, const std::string& machine) {
  Json per_node;
  if (run.most_per_node > 0) {
    per_node = {{"fewest", run.fewest_per_node}, {"most", run.most_per_node}};
  }
  Json object = run_head_json(run, run.file);
  object.update(Json{{"ended", text_or_null(run.ended)},
                     {"git_hash", text_or_null(run.git_hash)},
                     {"ranks_per_node", per_node},
                     {"machine", machine},
                     {"hosts", run.hosts},
                     {"cpu", text_or_null(run.cpu)},
                     {"gpu", text_or_null(run.gpu)},
                     {"cores", number_or_null(run.cores)}});
  return object;
}

Json trend_json(const catalog::Index& index, const catalog::IndexTrend& trend) {
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

/// Returns one object for each machine, with its trends.
Json machines_json(const catalog::Index& index) {
  Json rows = Json::array();
  for (const catalog::IndexMachine& machine : index.machines) {
    Json runs = Json::array(), trends = Json::array();
    for (const std::size_t at : machine.runs) runs.push_back(index.runs[at].id);
    for (const catalog::IndexTrend& trend : machine.trends)
      trends.push_back(trend_json(index, trend));
    rows.push_back({{"name", machine.name},
                    {"hosts", machine.hosts},
                    {"runs", runs},
                    {"throughput_over_time", trends}});
  }
  return rows;
}

}  // namespace

Json index_json(const catalog::Index& index) {
  // The runs stay in the order given; they are not grouped by machine.
  std::vector<std::string> machines(index.runs.size());
  for (const catalog::IndexMachine& machine : index.machines) {
    for (const std::size_t at : machine.runs) machines[at] = machine.name;
  }
  Json runs = Json::array(), unreadable = Json::array();
  for (std::size_t i = 0; i < index.runs.size(); ++i) {
    runs.push_back(run_json(index.runs[i], machines[i]));
    Json& experiments = runs.back()["experiments"] = Json::array();
    for (const catalog::IndexExperiment& of : index.runs[i].experiments) {
      experiments.push_back(experiment_json(of));
    }
  }
  for (const catalog::Unreadable& file : index.unreadable) {
    unreadable.push_back({{"file", file.file}, {"reason", file.reason}});
  }
  return {{"index", runs}, {"machines", machines_json(index)}, {"unreadable", unreadable}};
}

Json index_report_json(const IndexReport& report) {
  // The objects of the runs have no key for points, so that readers do not conclude that the runs
  // have no points.
  Json runs = Json::array();
  for (const catalog::IndexRun& run : report.index.runs)
    runs.push_back(run_head_json(run, run.file));
  Json object{{"schema_version", report_schema_version},
              {"runs", runs},
              {"curves", Json::array()},
              {"warnings", report.warnings},
              {"index_only", true}};
  object.update(index_json(report.index));
  return object;
}

std::string render_index_json(const IndexReport& report) {
  return dumped(index_report_json(report));
}

std::string render_index_csv(const IndexReport& report) {
  const auto cells_of = [](const Json& run, const Json& experiment) {
    std::vector<CsvCell> cells;
    add_csv_cells(cells, run, run_columns);
    add_csv_cells(cells, experiment, experiment_columns);
    return cells;
  };
  std::string text = csv_heading(cells_of({}, {}));
  for (const catalog::IndexMachine& machine : report.index.machines) {
    for (const std::size_t at : machine.runs) {
      const catalog::IndexRun& run = report.index.runs[at];
      Json line = run_json(run, machine.name);
      line["hosts_text"] = catalog::shorten_hosts(run.hosts);
      std::vector<catalog::IndexExperiment> experiments = run.experiments;
      if (experiments.empty()) experiments.emplace_back();
      for (const catalog::IndexExperiment& of : experiments) {
        Json experiment = experiment_json(of);
        experiment["kind"] = run.experiments.empty() ? "none"
                             : of.is_bench           ? "micro-benchmark"
                                                     : "curve";
        text += csv_values(cells_of(line, experiment));
      }
    }
  }
  return text;
}

}  // namespace isoscale::analysis::render
