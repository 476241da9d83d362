// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/render_json.hpp"

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/advice/findings.hpp"
#include "analysis/catalog/index.hpp"
#include "analysis/curves.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/findings.hpp"
#include "analysis/render/inference.hpp"
#include "analysis/render/json_values.hpp"
#include "analysis/render/machine.hpp"
#include "analysis/render/render.hpp"

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

/// Returns one object for each run, in the order given.
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

/// Returns one object for each machine, with its trends.
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

/// Returns file and reason for each unreadable file.
Json unreadable_json(const Index& index) {
  Json rows = Json::array();
  for (const Unreadable& file : index.unreadable) {
    rows.push_back({{"file", file.file}, {"reason", file.reason}});
  }
  return rows;
}

/// Returns `runs[]` for a report that has only an index. The key for points is absent, so that
/// readers do not take it for a run without points.
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

/// The version of the report's format, which is not that of run files. New keys raise the minor
/// version; a change of meaning raises the major.
constexpr std::string_view schema_version = "1.4";

Json system_json(const results::RunData& run) {
  Json ranks = Json::array();
  for (const results::RankFacts& facts : run.rank_facts) {
    ranks.push_back({{"rank", facts.rank},
                     {"host", facts.host},
                     {"node", facts.node},
                     {"text", Json(facts.text)},
                     {"number", Json(facts.number)}});
  }
  Json environment = Json::object();
  for (const auto& [name, value] : run.environment) environment[name] = value;
  return {{"device_detail", text_or_null(run.device_detail)},
          {"mpi_library", text_or_null(run.mpi_library)},
          {"compiler", text_or_null(run.compiler)},
          {"build_type", text_or_null(run.build_type)},
          {"git_hash", text_or_null(run.git_hash)},
          {"command_line", text_or_null(run.command_line)},
          {"environment", environment},
          {"ranks", ranks}};
}

Json curves_json(const RunReport& report) {
  Json curves = Json::array();
  for (const Curve& curve : report.curves) {
    Json points = Json::array();
    for (const PointReport& point : curve.points) points.push_back(point.data->index);
    curves.push_back({{"title", curve.title},
                      {"baseline", number_or_null(curve.baseline)},
                      {"baseline_unit", curve.per_node ? "node" : "rank"},
                      {"baseline_name", text_or_null(baseline_name(curve))},
                      {"baseline_unsure", has_unsure_baseline(curve)},
                      {"points", points},
                      {"laws", laws_json(curve.laws)}});
  }
  return curves;
}

Json run_json(const RunReport& report) {
  const results::RunData& run = *report.data;
  std::vector<const PointReport*> points;
  for (const Curve& curve : report.curves) {
    for (const PointReport& point : curve.points) points.push_back(&point);
  }
  for (const PointReport& point : report.benches) points.push_back(&point);
  std::ranges::stable_sort(points, {}, [](const PointReport* at) { return at->data->index; });
  const std::vector<Inference> inferences = inferences_of(report);
  Json rows = Json::array();
  for (const PointReport* const point : points) {
    rows.push_back(point_json(*point));
    add_causes_json(*point, rows.back());
    add_inferences_json(inferences, *point, rows.back());
  }
  return {{"id", run.id},
          {"file", report.file},
          {"created", run.created},
          {"isoscale_version", run.isoscale_version},
          {"device", run.device},
          {"ranks", run.ranks},
          {"nodes", run.nodes},
          {"status", run.complete ? "complete" : "partial"},
          {"warnings", Json(run.warnings)},
          {"system", system_json(run)},
          {"preflight", run.preflight ? checks_json(*run.preflight) : Json{}},
          {"points", rows},
          {"curves", curves_json(report)},
          {"findings", findings_json(findings_of(report))},
          {"findings_left_out", left_out_json(left_out_of(report))},
          {"calibration", calibration_json(report.calibration)}};
}

/// Returns the text of a document, ASCII only, so that printing it on a terminal is safe; bytes
/// that are not UTF-8 are replaced.
std::string dumped(const Json& document) {
  return document.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Json report_json(const Report& whole) {
  Json runs = Json::array();
  for (const RunReport& report : whole.runs) runs.push_back(run_json(report));
  return {{"schema_version", schema_version},
          {"runs", runs},
          {"curves", joined_json(whole.joined)},
          {"findings", findings_json(findings_of(whole))},
          {"findings_left_out", left_out_json(left_out_of(whole))},
          {"warnings", whole.warnings},
          {"index_only", false},
          {"index", index_json(whole.index)},
          {"machines", machines_json(whole.index)},
          {"unreadable", unreadable_json(whole.index)}};
}

std::string render_json(const Report& report) { return dumped(report_json(report)); }

Json index_report_json(const IndexReport& report) {
  return {{"schema_version", schema_version},
          {"runs", bare_runs_json(report.index)},
          {"curves", Json::array()},
          {"warnings", report.warnings},
          {"index_only", true},
          {"index", index_json(report.index)},
          {"machines", machines_json(report.index)},
          {"unreadable", unreadable_json(report.index)}};
}

std::string render_index_json(const IndexReport& report) {
  return dumped(index_report_json(report));
}

}  // namespace isoscale::analysis
