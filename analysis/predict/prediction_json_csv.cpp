// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "analysis/predict/prediction.hpp"
#include "analysis/render/document_and_metrics.hpp"
#include "analysis/render/escaped_text_and_tables.hpp"
#include "analysis/render/json_values.hpp"
#include "analysis/render/table_cells.hpp"

namespace isoscale::analysis::predict {
namespace {

using Json = nlohmann::ordered_json;

/// The version of this JSON format. New keys raise the minor version; a change of meaning raises
/// the major version.
constexpr std::string_view schema_version = "1.0";

Json breakdown_json(const std::optional<breakdown::Breakdown>& parts) {
  if (!parts) return {};
  Json object = Json::object();
  for (const render::Category& category : render::categories()) {
    object[std::string{category.name}] = (*parts).*category.seconds;
  }
  object["hidden_communication"] = parts->hidden_communication;
  object["hidden_transfer"] = parts->hidden_transfer;
  return object;
}

Json waterfall_json(const std::optional<efficiency::Waterfall>& waterfall) {
  if (!waterfall) return {};
  Json lost = Json::object();
  for (const efficiency::LostTime& at : waterfall->lost) lost[at.cause] = at.seconds;
  return {{"ideal", waterfall->ideal}, {"predicted", waterfall->measured}, {"lost", lost}};
}

/// Returns a value of a forecast with its 90% interval, as a JSON object. Path is the member of
/// Forecast that holds the value, or a function that computes it from a Forecast.
template <auto Path>
constexpr auto expected_value = [](const Forecast& at) -> render::Value {
  return render::located_json(std::optional{std::invoke(Path, at)});
};

/// Returns the JSON object for one rank count. If there is no forecast for it, the object has only
/// ranks, nodes and the reason.
Json point_json(const Forecast& at) {
  return render::object_of<Forecast>(forecast_metrics(), at,
                                     at.refused.empty() ? "" : "ranks nodes refused");
}

Json curve_json(const ForecastCurve& curve) {
  return {{"title", curve.title}, {"points", render::list_json(curve.points, point_json)}};
}

Json measured_json(const MeasuredPoint& at) {
  return {{"ranks", at.ranks},
          {"nodes", at.nodes},
          {"mesh", render::mesh_extents_json(at.mesh)},
          {"step_time", at.step_time},
          {"throughput", at.throughput},
          {"work_growth", at.work_growth},
          {"efficiency", render::number_or_null(at.efficiency)},
          {"simulated", at.simulated}};
}

Json candidate_json(const Candidate& at) {
  return {{"mesh", render::mesh_extents_json(at.request.mesh)},
          {"options", Json(at.request.options)},
          {"step_time", at.step_time},
          {"throughput", at.throughput},
          {"memory_per_rank", at.memory.all},
          {"device_memory_per_rank", at.memory.device},
          {"host_memory_per_rank", at.memory.host},
          {"breakdown", breakdown_json(at.breakdown)},
          {"why_not", render::text_or_null(at.why_not)}};
}

Json ceiling_json(const std::optional<MfuCeiling>& ceiling) {
  return ceiling ? Json{{"rate", ceiling->rate}, {"what", ceiling->what}} : Json{};
}

Json part_json(const PartSource& at) {
  return {{"part", at.part}, {"from", at.from}, {"source", at.source}};
}

Json next_json(const std::optional<NextMeasurement>& next) {
  if (!next) return {};
  return {{"what", next->what},
          {"command", next->command},
          {"width_now", next->width_now},
          {"width_then", next->width_then}};
}

std::string options_text(const workloads::Options& options) {
  std::string text;
  for (const auto& [key, value] : options) {
    text += (text.empty() ? "" : " ") + key + "=" + value;
  }
  return text;
}

/// Returns the columns of the CSV report, in the syntax that add_csv_cells() reads: each a name, or
/// "name=path" with the value's path in the JSON object of a row.
std::string csv_columns() {
  std::string columns =
      "source machine curve title ranks nodes refused mesh options step_time=step_time/value "
      "step_time_lower=step_time/lower step_time_upper=step_time/upper "
      "throughput=throughput/value throughput_lower=throughput/lower "
      "throughput_upper=throughput/upper throughput_unit speedup=speedup/value "
      "speedup_lower=speedup/lower speedup_upper=speedup/upper efficiency=efficiency/value "
      "efficiency_lower=efficiency/lower efficiency_upper=efficiency/upper "
      "noise=uncertainty/noise launch=uncertainty/launch fit=uncertainty/fit extrapolated "
      "simulated delay memory_per_rank fits mfu";
  for (const render::Category& category : render::categories()) {
    columns += fmt::format(" {0}=breakdown/{0}", category.name);
  }
  return columns +
         " hidden_communication=breakdown/hidden_communication ideal=waterfall/ideal limit "
         "device_memory_per_rank host_memory_per_rank "
         "hidden_transfer=breakdown/hidden_transfer work_growth";
}

/// Returns the JSON object for one CSV row. It has the values of one rank count, and values of the
/// whole prediction that every row repeats.
Json csv_row(const Prediction& prediction, const ForecastCurve& curve, const Forecast& at) {
  const auto yes_or_no = [](bool is) { return is ? "yes" : "no"; };
  Json row = point_json(at);
  row["source"] = prediction.source;
  row["machine"] = prediction.machine;
  row["curve"] = curve.title;
  row["title"] = prediction.title;
  row["mesh"] = at.refused.empty() ? mesh::to_string(at.request.mesh) : "";
  row["options"] = options_text(at.request.options);
  row["throughput_unit"] = prediction.throughput_unit;
  row["extrapolated"] = yes_or_no(at.extrapolated);
  row["fits"] = at.fits ? Json(yes_or_no(*at.fits)) : Json{};
  return row;
}

}  // namespace

render::Metrics<Forecast> forecast_metrics() {
  using enum Unit;
  using render::member;
  using F = Forecast;
  using R = workloads::Request;
  static constexpr render::Metric<Forecast> all[] = {
      {"ranks", "ranks", count, member<&F::ranks>},
      {"nodes", "nodes", count, member<&F::nodes>},
      {"refused", "", text, member<&F::refused>},
      {"mesh", "", text, member<&F::request, &R::mesh, render::mesh_extents_json>},
      {"model", "model", text, [](auto& at) { return render::Value(at.request.model.name); }},
      {"options", "", text, render::plain<&F::request, &R::options>},
      {"step_time", "step time", seconds, expected_value<&F::step_time>, "with its 90% interval"},
      {"throughput", "throughput", prefixed, expected_value<&F::throughput>,
       "with its 90% interval"},
      {"throughput_per_rank", "throughput per rank", prefixed,
       expected_value<&F::throughput_per_rank>},
      {"work_growth", "growth", ratio, render::plain<&F::work_growth>},
      {"speedup", "speed-up", ratio, expected_value<&F::speedup>},
      {"efficiency", "efficiency", share, expected_value<&F::efficiency>,
       "throughput per rank relative to the baseline's"},
      {"uncertainty", "", text,
       [](const Forecast& at) -> render::Value {
         const Uncertainty& of = at.uncertainty;
         return Json{{"noise", of.noise}, {"launch", of.launch}, {"fit", of.fit}};
       }},
      {"~noise", "noise", share, member<&F::uncertainty, &Uncertainty::noise>,
       "of the step time, from step to step"},
      {"~launch", "launch", share, member<&F::uncertainty, &Uncertainty::launch>,
       "of the median step, from launch to launch"},
      {"~fit", "model", share, member<&F::uncertainty, &Uncertainty::fit>,
       "what it misses of known points, and of its extrapolation"},
      {"extrapolated", "extrapolated", text, render::plain<&F::extrapolated>},
      {"simulated", "simulated", seconds, render::plain<&F::simulated>},
      {"delay", "delay by noise", seconds, render::plain<&F::delay>},
      {"memory_per_rank", "memory per rank", bytes, render::plain<&F::memory, &StepMemory::all>},
      {"device_memory_per_rank", "device memory", bytes,
       render::plain<&F::memory, &StepMemory::device>},
      {"host_memory_per_rank", "host memory", bytes, render::plain<&F::memory, &StepMemory::host>},
      {"fits", "fits", text, member<&F::fits>},
      {"mfu", "MFU", share, member<&F::mfu>},
      {"expected_mfu", "", share, member<&F::expected_mfu>},
      {"breakdown", "", text, member<&F::breakdown, breakdown_json>},
      {"waterfall", "", text, member<&F::waterfall, waterfall_json>},
      {"limit", "limit", text, member<&F::limit>},
  };
  return all;
}

Json prediction_json(const Prediction& prediction) {
  return {{"schema_version", schema_version},
          {"source", prediction.source},
          {"machine", prediction.machine},
          {"software", render::text_or_null(prediction.software)},
          {"workload", prediction.workload},
          {"title", prediction.title},
          {"throughput_unit", prediction.throughput_unit},
          {"mfu_ceiling", ceiling_json(prediction.ceiling)},
          {"node_ranks", prediction.node_ranks},
          {"baseline", render::number_or_null(prediction.baseline)},
          {"has_efficiency", prediction.has_efficiency()},
          {"correction", render::number_or_null(prediction.correction)},
          {"measured", render::list_json(prediction.measured, measured_json)},
          {"curve", curve_json(prediction.base)},
          {"what_if", render::list_json(prediction.what_if, curve_json)},
          {"limits", Json(prediction.limits)},
          {"next", next_json(prediction.next)},
          {"searched", prediction.searched},
          {"best", render::list_json(prediction.best, candidate_json)},
          {"best_command", render::text_or_null(prediction.command)},
          {"best_command_memory", render::number_or_null(prediction.command_memory)},
          {"batch", render::number_or_null(prediction.batch)},
          {"tokens_per_step", render::number_or_null(prediction.tokens_per_step)},
          {"options", prediction.options},
          {"network", render::text_or_null(prediction.network)},
          {"parts", render::list_json(prediction.parts, part_json)},
          {"assumed", prediction.assumed},
          {"warnings", Json(prediction.warnings)}};
}

std::string render_json(const Prediction& prediction) {
  return render::dumped(prediction_json(prediction));
}

std::string render_csv(const Prediction& prediction) {
  const std::string columns = csv_columns();
  std::vector<render::CsvCell> names;
  render::add_csv_cells(names, Json::object(), columns);
  std::string text = render::csv_heading(names);
  const auto add = [&](const ForecastCurve& curve) {
    for (const Forecast& at : curve.points) {
      std::vector<render::CsvCell> cells;
      render::add_csv_cells(cells, csv_row(prediction, curve, at), columns);
      text += render::csv_values(cells);
    }
  };
  add(prediction.base);
  for (const ForecastCurve& curve : prediction.what_if) add(curve);
  return text;
}

}  // namespace isoscale::analysis::predict
