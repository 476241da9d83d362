// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/render_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/advice/findings.hpp"
#include "analysis/causes/causes_json.hpp"
#include "analysis/curves.hpp"
#include "analysis/devices/device_tables.hpp"
#include "analysis/index/index_json.hpp"
#include "analysis/launches/joined_json.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/checks.hpp"
#include "analysis/render/json_values.hpp"
#include "analysis/render/render.hpp"
#include "analysis/rows/infer.hpp"
#include "analysis/rows/rows_json.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

/// Of this format, not of run files. Keys are only ever added; a change of meaning raises the
/// major.
constexpr std::string_view schema_version = "1.3";

Json step_time_json(const PointReport& point) {
  const auto& time = point.step_time;
  const auto field = [&time](auto member) { return time ? Json(*time.*member) : Json{}; };
  return {{"median", field(&Estimate::median)},
          {"lower", time ? number_or_null(time->lower) : Json{}},
          {"upper", time ? number_or_null(time->upper) : Json{}},
          {"min", field(&Estimate::minimum)},
          {"max", field(&Estimate::maximum)},
          {"steps", time ? time->samples : 0}};
}

Json communicators_json(const results::PointData& data) {
  Json rows = Json::array();
  for (const results::CommunicatorTime& made : data.communicators) {
    rows.push_back({{"name", made.name},
                    {"ranks", made.ranks},
                    {"creation", made.creation},
                    {"first_call", number_or_null(made.first_call)}});
  }
  return rows;
}

/// [lower, upper], or null.
Json interval_json(const std::optional<Located>& located) {
  if (!located || !located->lower || !located->upper) return {};
  return Json::array({*located->lower, *located->upper});
}

/// null where nothing was replayed.
Json soak_json(const results::Soak& soak) {
  if (soak.replays == 0) return nullptr;
  return {
      {"replays", soak.replays}, {"seconds", soak.seconds}, {"differing", Json(soak.differing)}};
}

Json point_json(const PointReport& point) {
  const results::PointData& data = *point.data;
  return {
      {"index", data.index},
      {"workload", data.workload},
      {"model", data.model},
      {"dtype", data.dtype},
      {"mesh",
       {{"dp", data.mesh.dp},
        {"tp", data.mesh.tp},
        {"pp", data.mesh.pp},
        {"cp", data.mesh.cp},
        {"ep", data.mesh.ep}}},
      {"ranks", data.ranks},
      {"nodes", data.nodes},
      {"ranks_per_node", ranks_per_node_json(point)},
      {"axes", axes_json(point)},
      {"scaling", data.scaling},
      {"placement", data.placement},
      {"options", Json(data.options)},
      {"labels", Json(point.labels)},
      {"status", results::name(data.status)},
      {"reason", text_or_null(data.reason)},
      {"verified", number_or_null(data.verified)},
      {"step_time", step_time_json(point)},
      {"throughput",
       {{"value", number_or_null(point.throughput)}, {"unit", text_or_null(data.throughput_unit)}}},
      {"speedup", number_or_null(point.speedup)},
      {"efficiency", number_or_null(point.efficiency)},
      {"flop_per_step", number_or_null(point.flop_per_step)},
      {"flops_per_rank", number_or_null(point.flops_per_rank)},
      {"mfu", number_or_null(point.mfu)},
      {"memory_per_rank", number_or_null(point.memory_per_rank)},
      {"device_memory_per_rank", number_or_null(point.device_memory_per_rank)},
      {"host_memory_per_rank", number_or_null(point.host_memory_per_rank)},
      {"samples_per_second", number_or_null(point.samples_per_second)},
      {"work_growth", number_or_null(point.work_growth)},
      {"traced_step", number_or_null(point.traced_step)},
      {"breakdown", breakdown_json(point)},
      {"op_time", Json(point.op_time)},
      {"hidden_communication", hidden_communication_json(point)},
      {"communication_ratio", number_or_null(point.communication_ratio)},
      {"instrumentation_overhead", number_or_null(value_of(point.instrumentation_overhead))},
      {"instrumentation_overhead_interval", interval_json(point.instrumentation_overhead)},
      {"flags", Json(point.flags.sentences)},
      {"device_state", device_state_json(point)},
      {"graph", data.graph},
      {"soak", soak_json(data.soak)},
      {"communicators", communicators_json(data)},
      {"link_share", link_shares_json(point)},
      {"rows", point.bench ? rows_json(point) : Json::array()},
      {"slow_pairs", point.bench ? slow_pairs_json(point) : Json::array()},
  };
}

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

/// ASCII only, so that printing it on a terminal is safe; bytes that are not UTF-8 are replaced.
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
