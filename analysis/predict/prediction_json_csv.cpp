// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/predict/prediction.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/json_values.hpp"
#include "analysis/render/text.hpp"

namespace isoscale::analysis::predict {
namespace {

using Json = nlohmann::ordered_json;

/// The version of this format. New keys raise the minor version; a change of meaning raises the
/// major.
constexpr std::string_view schema_version = "1.0";

Json mesh_json(const mesh::Shape& mesh) {
  return {{"dp", mesh.dp}, {"tp", mesh.tp}, {"pp", mesh.pp}, {"cp", mesh.cp}, {"ep", mesh.ep}};
}

Json expected_json(const Expected& at) {
  return {{"value", at.value}, {"lower", at.lower}, {"upper", at.upper}};
}

Json breakdown_json(const std::optional<breakdown::Breakdown>& parts) {
  if (!parts) return {};
  Json object = Json::object();
  for (const render::Category& category : render::categories()) {
    object[std::string{category.name}] = (*parts).*category.seconds;
  }
  object["hidden_communication"] = parts->hidden_communication;
  return object;
}

Json waterfall_json(const std::optional<efficiency::Waterfall>& waterfall) {
  if (!waterfall) return {};
  Json lost = Json::object();
  for (const efficiency::LostTime& at : waterfall->lost) lost[at.cause] = at.seconds;
  return {{"ideal", waterfall->ideal}, {"predicted", waterfall->measured}, {"lost", lost}};
}

/// Returns the JSON object of a rank count; a refused one has only ranks, nodes and the reason.
Json point_json(const Forecast& at) {
  if (!at.refused.empty()) {
    return {{"ranks", at.ranks}, {"nodes", at.nodes}, {"refused", at.refused}};
  }
  return {{"ranks", at.ranks},
          {"nodes", at.nodes},
          {"refused", nullptr},
          {"mesh", mesh_json(at.request.mesh)},
          {"model", at.request.model.name},
          {"options", Json(at.request.options)},
          {"step_time", expected_json(at.step_time)},
          {"throughput", expected_json(at.throughput)},
          {"throughput_per_rank", expected_json(at.throughput_per_rank())},
          {"speedup", expected_json(at.speedup)},
          {"efficiency", expected_json(at.efficiency)},
          {"uncertainty",
           {{"noise", at.uncertainty.noise},
            {"launch", at.uncertainty.launch},
            {"fit", at.uncertainty.fit}}},
          {"extrapolated", at.extrapolated},
          {"simulated", at.simulated},
          {"delay", at.delay},
          {"memory_per_rank", at.memory_per_rank},
          {"fits", at.fits ? Json(*at.fits) : Json{}},
          {"mfu", render::number_or_null(at.mfu)},
          {"expected_mfu", at.mfu ? expected_json(*at.expected_mfu()) : Json{}},
          {"breakdown", breakdown_json(at.breakdown)},
          {"waterfall", waterfall_json(at.waterfall)},
          {"limit", render::text_or_null(at.limit)}};
}

Json curve_json(const ForecastCurve& curve) {
  Json points = Json::array();
  for (const Forecast& at : curve.points) points.push_back(point_json(at));
  return {{"title", curve.title}, {"points", points}};
}

Json measured_json(const MeasuredPoint& at) {
  return {{"ranks", at.ranks},           {"nodes", at.nodes},
          {"mesh", mesh_json(at.mesh)},  {"step_time", at.step_time},
          {"throughput", at.throughput}, {"efficiency", render::number_or_null(at.efficiency)},
          {"simulated", at.simulated}};
}

Json candidate_json(const Candidate& at) {
  return {{"mesh", mesh_json(at.request.mesh)},
          {"options", Json(at.request.options)},
          {"step_time", at.step_time},
          {"throughput", at.throughput},
          {"memory_per_rank", at.memory_per_rank},
          {"breakdown", breakdown_json(at.breakdown)},
          {"why_not", render::text_or_null(at.why_not)}};
}

Json next_json(const std::optional<NextMeasurement>& next) {
  if (!next) return {};
  return {{"what", next->what},
          {"command", next->command},
          {"width_now", next->width_now},
          {"width_then", next->width_then}};
}

template <class Items, class Convert>
Json array_of(const Items& items, const Convert& convert) {
  Json array = Json::array();
  for (const auto& item : items) array.push_back(convert(item));
  return array;
}

std::string options_text(const workloads::Options& options) {
  std::string text;
  for (const auto& [key, value] : options) {
    text += (text.empty() ? "" : " ") + key + "=" + value;
  }
  return text;
}

/// Returns the column names of the CSV report; flat_row() has a value for each of them.
std::string csv_columns() {
  std::string columns =
      "source,machine,curve,title,ranks,nodes,refused,mesh,options,step_time,step_time_lower,"
      "step_time_upper,throughput,throughput_lower,throughput_upper,throughput_unit,speedup,"
      "speedup_lower,speedup_upper,efficiency,efficiency_lower,efficiency_upper,noise,launch,fit,"
      "extrapolated,simulated,delay,memory_per_rank,fits,mfu";
  for (const render::Category& category : render::categories())
    columns += fmt::format(",{}", category.name);
  return columns + ",hidden_communication,ideal,limit";
}

/// Returns the flat JSON object for one CSV row: a rank count's values, and those of the whole
/// prediction, which every row repeats.
Json flat_row(const Prediction& prediction, const ForecastCurve& curve, const Forecast& at) {
  Json row{{"source", prediction.source},
           {"machine", prediction.machine},
           {"curve", curve.title},
           {"title", prediction.title},
           {"mesh", at.refused.empty() ? mesh::to_string(at.request.mesh) : ""},
           {"options", options_text(at.request.options)},
           {"throughput_unit", prediction.throughput_unit},
           {"extrapolated", false}};
  const Json point = point_json(at);
  for (const auto& [key, value] : point.items()) {
    if (value.contains("value")) {
      row[key] = value["value"];
      row[key + "_lower"] = value["lower"];
      row[key + "_upper"] = value["upper"];
    } else if (value.is_object() && (key == "uncertainty" || key == "breakdown")) {
      row.update(value);
    } else if (value.is_object() && key == "waterfall") {
      row["ideal"] = value["ideal"];
    } else if (!value.is_object()) {
      row[key] = value;
    }
  }
  return row;
}

std::string cell_of(const Json& value) {
  if (value.is_string()) return render::text_cell(value.get<std::string>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number_integer()) return std::to_string(value.get<std::int64_t>());
  return value.is_number() ? render::number_cell(value.get<double>()) : "";
}

std::string csv_line(const Prediction& prediction, const ForecastCurve& curve, const Forecast& at) {
  const Json row = flat_row(prediction, curve, at);
  std::vector<render::CsvCell> cells;
  std::istringstream columns{csv_columns()};
  for (std::string column; std::getline(columns, column, ',');) {
    cells.emplace_back("", row.contains(column) ? cell_of(row[column]) : "");
  }
  return render::csv_values(cells);
}

}  // namespace

Json prediction_json(const Prediction& prediction) {
  return {{"schema_version", schema_version},
          {"source", prediction.source},
          {"machine", prediction.machine},
          {"workload", prediction.workload},
          {"title", prediction.title},
          {"throughput_unit", prediction.throughput_unit},
          {"node_ranks", prediction.node_ranks},
          {"baseline", render::number_or_null(prediction.baseline)},
          {"has_efficiency", prediction.has_efficiency()},
          {"correction", render::number_or_null(prediction.correction)},
          {"measured", array_of(prediction.measured, measured_json)},
          {"curve", curve_json(prediction.base)},
          {"what_if", array_of(prediction.what_if, curve_json)},
          {"limits", Json(prediction.limits)},
          {"next", next_json(prediction.next)},
          {"searched", prediction.searched},
          {"best", array_of(prediction.best, candidate_json)},
          {"best_command", render::text_or_null(prediction.command)},
          {"batch", render::number_or_null(prediction.batch)},
          {"tokens_per_step", render::number_or_null(prediction.tokens_per_step)},
          {"options", prediction.options},
          {"network", render::text_or_null(prediction.network)},
          {"assumed", prediction.assumed},
          {"warnings", Json(prediction.warnings)}};
}

/// Returns ASCII only, so that printing it on a terminal is safe; bytes that are not UTF-8 are
/// replaced.
std::string render_json(const Prediction& prediction) {
  return prediction_json(prediction).dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

std::string render_csv(const Prediction& prediction) {
  std::string text = csv_columns() + "\n";
  const auto add = [&](const ForecastCurve& curve) {
    for (const Forecast& at : curve.points) text += csv_line(prediction, curve, at);
  };
  add(prediction.base);
  for (const ForecastCurve& curve : prediction.what_if) add(curve);
  return text;
}

}  // namespace isoscale::analysis::predict
