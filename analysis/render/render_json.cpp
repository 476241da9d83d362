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

namespace isoscale::analysis::render {
namespace {

using Json = nlohmann::ordered_json;

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
    Json object{{"title", curve.title}};
    object.update(baseline_json(curve));
    object["points"] = points;
    object["laws"] = laws_json(curve.laws);
    curves.push_back(std::move(object));
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
  Json object = run_head_json(run, report.file);
  object.update(Json{{"warnings", run.warnings},
                     {"system", system_json(run)},
                     {"preflight", run.preflight ? checks_json(*run.preflight) : Json{}},
                     {"points", rows},
                     {"curves", curves_json(report)},
                     {"findings", findings_json(advice::findings_of(report))},
                     {"findings_left_out", left_out_json(advice::left_out_of(report))},
                     {"calibration", calibration_json(report.calibration)}});
  return object;
}

}  // namespace

Json baseline_json(const Curve& curve) {
  return {{"baseline", number_or_null(curve.baseline)},
          {"baseline_unit", curve.per_node ? "node" : "rank"},
          {"baseline_name", text_or_null(baseline_name(curve))},
          {"baseline_unsure", has_unsure_baseline(curve)}};
}

Json report_json(const merge::Report& whole) {
  Json runs = Json::array();
  for (const RunReport& report : whole.runs) runs.push_back(run_json(report));
  Json object{{"schema_version", report_schema_version},
              {"runs", runs},
              {"curves", joined_json(whole.joined)},
              {"findings", findings_json(advice::findings_of(whole))},
              {"findings_left_out", left_out_json(advice::left_out_of(whole))},
              {"warnings", whole.warnings},
              {"index_only", false}};
  object.update(index_json(whole.index));
  return object;
}

std::string render_json(const merge::Report& report) { return dumped(report_json(report)); }

}  // namespace isoscale::analysis::render
