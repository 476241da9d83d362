// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/compare_render.hpp"
#include "analysis/compare/comparison_internals.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "analysis/curves_and_baselines.hpp"
#include "analysis/render/curve_tables_and_remarks.hpp"
#include "analysis/render/json_values.hpp"

namespace isoscale::analysis::compare {
namespace {

using Json = nlohmann::ordered_json;

/// The version of this JSON format. New keys raise the minor version; a change of meaning raises
/// the major version.
constexpr std::string_view schema_version = "1.0";

Json normalised_json(const Normalised& at) {
  return {{"value", render::number_or_null(at.value)},
          {"against", render::text_or_null(at.against)},
          {"missing", render::text_or_null(at.missing)}};
}

Json launch_json(const merge::LaunchPoint& at) {
  return {{"run", at.run->data->id},
          {"file", at.run->file},
          {"step_time", at.point->step_time->median},
          {"throughput", *at.point->throughput}};
}

Json point_json(const Comparison& of, std::size_t curve, std::size_t s, const SideCurve& side,
                std::size_t i) {
  const PointReport& point = side.curve.points[i];
  Json object =
      object_of<PointReport>(render::point_metrics(), point,
                             render::completed<PointReport>(
                                 render::point_metrics(),
                                 "ranks nodes mesh step_time ... efficiency", render::in_compare));
  for (const char* const key : {"min", "max", "launches"}) object["step_time"].erase(key);
  object["step_time"]["spread"] = render::number_or_null(merge::spread_of(point));
  object["throughput"]["unit"] = point.throughput_unit;
  object["work_growth"] = point.work_growth;
  object["efficiency"] = render::located_json(
      std::optional{efficiency_interval(point).value_or(statistics::Located{})});
  object["efficiency"]["value"] = render::number_or_null(point.efficiency);
  object["launches"] = render::list_json(side.joined->launches[i], launch_json);
  object["labels"] = point.labels;
  object["marks"] = marks_of(of, curve, s, point.data->ranks);
  for (const Rate& rate : rates) {
    object["normalised"][std::string{rate.key}] = normalised_json((side.*rate.all)[i]);
  }
  return object;
}

Json left_out_json(const merge::LeftOut& at) {
  return {{"ranks", at.at.point->data->ranks}, {"file", at.at.run->file}, {"reason", at.reason}};
}

Json curve_json(const Comparison& of, std::size_t c) {
  const ComparedCurve& curve = of.curves[c];
  Json sides = Json::array();
  std::set<std::string> marks;
  for (const Unlike& at : of.unlike) {
    if (at.curve == c) marks.insert(at.what);
  }
  for (std::size_t s = 0; s < curve.sides.size(); ++s) {
    if (!curve.sides[s]) continue;
    const SideCurve& side = *curve.sides[s];
    Json points = Json::array();
    for (std::size_t i = 0; i < side.curve.points.size(); ++i) {
      points.push_back(point_json(of, c, s, side, i));
    }
    sides.push_back({{"side", of.sides[s].name},
                     {"machine", Json(side.joined->machine)},
                     {"points", points},
                     {"left_out", render::list_json(side.joined->left_out, left_out_json)}});
  }
  const merge::JoinedCurve& joined = *curve.sides.front()->joined;
  Json object = render::experiment_head_json(joined.experiment);
  object.update(Json{{"title", curve.title},
                     {"fingerprint", joined.fingerprint},
                     {"baseline", render::number_or_null(curve.baseline)},
                     {"no_baseline", render::text_or_null(curve.no_baseline)},
                     {"marks", marks},
                     {"sides", sides}});
  return object;
}

Json end_json(const UnlikeEnd& end) {
  return {{"side", render::text_or_null(end.side)},
          {"value", render::text_or_null(end.value)},
          {"files", end.files}};
}

Json unlike_json(const Unlike& at) {
  return {{"what", at.what},
          {"here", end_json(at.here)},
          {"there", end_json(at.there)},
          {"ranks", render::number_or_null(at.ranks)},
          {"curve", at.title},
          {"sentence", text_of(at)}};
}

Json causes_json(const std::vector<CausePart>& causes, const char* unit, double scale) {
  return render::list_json(causes, [&](const CausePart& at) {
    return Json{{"cause", at.cause}, {unit, scale * at.value}};
  });
}

Json interval_json(const char* value, const std::optional<statistics::Located>& at,
                   double scale = 1) {
  const auto scaled = [scale](const std::optional<double>& end) {
    return end ? render::number_or_null(scale * *end) : Json{};
  };
  return {{value, scaled(value_of(at))},
          {"lower", scaled(at ? at->lower : std::nullopt)},
          {"upper", scaled(at ? at->upper : std::nullopt)}};
}

Json difference_json(const Comparison& of, const Difference& at) {
  constexpr double points = 100;
  const std::string main = efficiency_sentence(of, at), throughput = throughput_sentence(of, at);
  return {
      {"curve", of.curves[at.curve].title},
      {"curve_index", at.curve},
      {"side", of.sides[at.side].name},
      {"against", of.sides.front().name},
      {"ranks", at.ranks},
      {"launches", {{"side", at.launches}, {"against", at.launches_first}}},
      {"throughput", interval_json("ratio", at.throughput)},
      {"efficiency", interval_json("points", at.efficiency, points)},
      {"verdict", name(at.verdict)},
      {"p_regression", render::number_or_null(at.p_regression)},
      {"p_passed", render::number_or_null(at.p_passed)},
      {"marks", marks_of(of, at.curve, at.side, at.ranks)},
      {"why", causes_json(at.why.efficiency, "points", -points)},
      {"why_missing", render::text_or_null(at.why.no_efficiency)},
      {"step",
       {{"against", at.why.step_first},
        {"side", at.why.step_here},
        {"work_ratio", work_ratio(of, at)},
        {"why", causes_json(at.why.step, "seconds", 1)},
        {"missing", render::text_or_null(at.why.no_step)}}},
      {"not_separated", at.why.notes},
      {"sentence", main.empty() ? throughput : main},
      {"said",
       {{"throughput", throughput},
        {"efficiency", render::text_or_null(main)},
        {"step", render::text_or_null(step_sentence(of, at))}}},
      {"sentences", sentences_of(of, at)},
  };
}

Json overall_json(const Comparison& of, const Overall& at) {
  return {{"side", of.sides[at.side].name},
          {"against", of.sides.front().name},
          {"points", at.points},
          {"compared", at.compared},
          {"marked", at.marked},
          {"throughput",
           interval_json("ratio", at.points > 0 ? std::optional{at.throughput} : std::nullopt)},
          {"cause", render::text_or_null(at.cause)},
          {"cause_share", at.cause.empty() ? Json{} : Json(at.cause_share)},
          {"sentence", overall_sentence(of, at)}};
}

Json gate_json(const Comparison& of) {
  if (!of.gate) return {};
  const Gate& gate = *of.gate;
  return {{"loss", gate.loss},
          {"verdict", gate.fails() ? "failed" : gate_word(gate)},
          {"strict", gate.strict},
          {"points", of.differences.size()},
          {"tested", gate.tested},
          {"regressions", gate.regressions},
          {"passed", gate.passed},
          {"too_noisy", gate.too_noisy},
          {"one_launch", gate.one_launch},
          {"absent", gate.absent},
          {"sentence", gate_sentence(of)}};
}

Json side_json(const Side& side) {
  const auto run_json = [](const RunReport& run) {
    Json object = render::run_head_json(*run.data, run.file);
    object["git_hash"] = run.data->git_hash;
    object["altered"] = Json::array();  // always empty: altered files are not read
    return object;
  };
  return {{"name", side.name},
          {"machines", machine_names(side)},
          {"launches", render::list_json(side.runs, run_json)}};
}

Json machine_json(const Comparison& of, const MachineDifference& at) {
  Json values = Json::object();
  for (std::size_t s = 0; s < at.values.size(); ++s) values[of.sides[s].name] = at.values[s];
  return {{"name", at.name}, {"values", values}};
}

Json only_json(const Comparison& of, const OnlyOn& at) {
  return {{"side", of.sides[at.side].name},
          {"curve", at.title},
          {"ranks", at.ranks},
          {"reason", at.reason}};
}

/// The CSV columns of a side's point, followed by those of its difference from the first side. An
/// entry is "name=path", the column's name and the path of its value in the JSON. If name and path
/// are equal, the entry has only one of them.
constexpr std::string_view point_columns =
    "curve baseline ranks side files launches=launch_count nodes mesh=mesh_text labels marks "
    "step_time_median=step_time/median step_time_lower=step_time/lower "
    "step_time_upper=step_time/upper throughput=throughput/value throughput_unit=throughput/unit "
    "flops_per_rank efficiency=efficiency/value efficiency_lower=efficiency/lower "
    "efficiency_upper=efficiency/upper of_peak=normalised/peak/value "
    "of_peak_against=normalised/peak/against per_link_bandwidth=normalised/link/value "
    "per_link_bandwidth_against=normalised/link/against per_watt=normalised/watt/value "
    "per_watt_against=normalised/watt/against";
constexpr std::string_view difference_columns =
    "against throughput_ratio=throughput/ratio throughput_ratio_lower=throughput/lower "
    "throughput_ratio_upper=throughput/upper efficiency_points=efficiency/points "
    "efficiency_points_lower=efficiency/lower efficiency_points_upper=efficiency/upper verdict "
    "p_regression p_passed why_points sentence=sentences";

/// Returns the JSON from which the CSV row of a side's point is made. It has all values of the JSON
/// report's point and a few that only CSV shows.
Json line_json(const Comparison& of, std::size_t c, std::size_t s, std::size_t i) {
  const ComparedCurve& curve = of.curves[c];
  const SideCurve& side = *curve.sides[s];
  Json point = point_json(of, c, s, side, i);
  point["curve"] = curve.title;
  point["baseline"] = render::number_or_null(curve.baseline);
  point["side"] = of.sides[s].name;
  point["launch_count"] = point["launches"].size();
  point["mesh_text"] = mesh::to_string(side.curve.points[i].data->mesh);
  // Adding a key may move the launches in memory, so "files" is added after the loop over them.
  Json files = Json::array();
  for (const Json& launch : point["launches"]) files.push_back(launch["file"]);
  point["files"] = std::move(files);
  for (Json& rate : point["normalised"]) {
    if (rate["value"].is_null()) {
      rate["against"] =
          "none: " + (rate["missing"].is_null() ? "" : rate["missing"].get<std::string>());
    }
  }
  return point;
}

}  // namespace

Json compare_json(const Comparison& comparison) {
  const auto list = [&](const auto& items, auto to_json) {
    return render::list_json(items, [&](const auto& item) { return to_json(comparison, item); });
  };
  Json curves = Json::array();
  for (std::size_t c = 0; c < comparison.curves.size(); ++c) {
    curves.push_back(curve_json(comparison, c));
  }
  const Json unlike = render::list_json(comparison.unlike, unlike_json);
  return {{"schema_version", schema_version},
          {"sides", render::list_json(comparison.sides, side_json)},
          {"refused", comparison.refused ? unlike : Json::array()},
          {"unlike", unlike},
          {"unlike_lines", unlike_lines(comparison)},
          {"machines", list(comparison.machines, machine_json)},
          {"only", list(comparison.only, only_json)},
          {"curves", curves},
          {"overall", list(comparison.overall, overall_json)},
          {"differences", list(comparison.differences, difference_json)},
          {"gate", gate_json(comparison)},
          {"warnings", comparison.warnings}};
}

std::string render_json(const Comparison& comparison) {
  return render::dumped(compare_json(comparison));
}

std::string render_csv(const Comparison& comparison) {
  const std::string others = render::completed<PointReport>(render::point_metrics(), "...",
                                                            render::in_compare, point_columns);
  std::string heading, text;
  for (std::size_t c = 0; c < comparison.curves.size(); ++c) {
    for (std::size_t s = 0; s < comparison.sides.size(); ++s) {
      if (!comparison.curves[c].sides[s]) continue;
      const auto& points = comparison.curves[c].sides[s]->curve.points;
      for (std::size_t i = 0; i < points.size(); ++i) {
        // Points of the first side and points that only one side has get no difference.
        Json difference;
        if (const auto* const at = difference_of(comparison, c, s, points[i].data->ranks)) {
          difference = difference_json(comparison, *at);
          for (const CausePart& part : at->why.efficiency) {
            difference["why_points"][part.cause] = fmt::format("{:.4g}", -100 * part.value);
          }
        }
        std::vector<render::CsvCell> cells;
        const Json line = line_json(comparison, c, s, i);
        render::add_csv_cells(cells, line, point_columns);
        render::add_csv_cells(cells, difference, difference_columns);
        render::add_csv_cells(cells, line, "work_growth");
        render::add_csv_cells(cells, line, others);
        heading = render::csv_heading(cells);
        text += render::csv_values(cells);
      }
    }
  }
  return heading + text;
}

}  // namespace isoscale::analysis::compare
