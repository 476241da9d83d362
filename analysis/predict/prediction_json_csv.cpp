// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/predict/prediction.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/json_values.hpp"
#include "analysis/render/text.hpp"

namespace isoscale::analysis {
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

Json breakdown_json(const std::optional<Breakdown>& parts) {
  if (!parts) return {};
  Json object = Json::object();
  for (const Category& category : categories()) {
    object[std::string{category.name}] = (*parts).*category.seconds;
  }
  object["hidden_communication"] = parts->hidden_communication;
  return object;
}

Json waterfall_json(const std::optional<Waterfall>& waterfall) {
  if (!waterfall) return {};
  Json lost = Json::object();
  for (const LostTime& at : waterfall->lost) lost[at.cause] = at.seconds;
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
          {"mfu", number_or_null(at.mfu)},
          {"expected_mfu", at.mfu ? expected_json(*at.expected_mfu()) : Json{}},
          {"breakdown", breakdown_json(at.breakdown)},
          {"waterfall", waterfall_json(at.waterfall)},
          {"limit", text_or_null(at.limit)}};
}

Json curve_json(const ForecastCurve& curve) {
  Json points = Json::array();
  for (const Forecast& at : curve.points) points.push_back(point_json(at));
  return {{"title", curve.title}, {"points", points}};
}

Json measured_json(const MeasuredPoint& at) {
  return {{"ranks", at.ranks},           {"nodes", at.nodes},
          {"mesh", mesh_json(at.mesh)},  {"step_time", at.step_time},
          {"throughput", at.throughput}, {"efficiency", number_or_null(at.efficiency)},
          {"simulated", at.simulated}};
}

Json candidate_json(const Candidate& at) {
  return {{"mesh", mesh_json(at.request.mesh)},
          {"options", Json(at.request.options)},
          {"step_time", at.step_time},
          {"throughput", at.throughput},
          {"memory_per_rank", at.memory_per_rank},
          {"breakdown", breakdown_json(at.breakdown)},
          {"why_not", text_or_null(at.why_not)}};
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

/// Writes the cells of a rank count; cells of numbers are empty where nothing could be predicted.
class Cells {
 public:
  explicit Cells(const Forecast& at) : known_(at.refused.empty()) {}

  void text(std::string_view column, std::string_view value) {
    cells_.emplace_back(column, text_cell(value));
  }
  void number(std::string_view column, std::optional<double> value) {
    cells_.emplace_back(column, known_ ? number_cell(value) : "");
  }
  void count(std::string_view column, int value) {
    cells_.emplace_back(column, std::to_string(value));
  }
  [[nodiscard]] std::vector<CsvCell> take() { return std::move(cells_); }

 private:
  bool known_;
  std::vector<CsvCell> cells_;
};

void add_expected(Cells& cells, const std::array<std::string_view, 3>& columns,
                  const Expected& value) {
  cells.number(columns[0], value.value);
  cells.number(columns[1], value.lower);
  cells.number(columns[2], value.upper);
}

void add_breakdown(Cells& cells, const Forecast& at) {
  for (const Category& category : categories()) {
    cells.number(category.name,
                 at.breakdown ? std::optional{(*at.breakdown).*category.seconds} : std::nullopt);
  }
  cells.number("hidden_communication",
               at.breakdown ? std::optional{at.breakdown->hidden_communication} : std::nullopt);
}

std::vector<CsvCell> cells_of(const Prediction& prediction, const ForecastCurve& curve,
                              const Forecast& at) {
  Cells cells{at};
  cells.text("source", prediction.source);
  cells.text("machine", prediction.machine);
  cells.text("curve", curve.title);
  cells.text("title", prediction.title);
  cells.count("ranks", at.ranks);
  cells.count("nodes", at.nodes);
  cells.text("refused", at.refused);
  cells.text("mesh", at.refused.empty() ? mesh::to_string(at.request.mesh) : "");
  cells.text("options", options_text(at.request.options));
  add_expected(cells, {"step_time", "step_time_lower", "step_time_upper"}, at.step_time);
  add_expected(cells, {"throughput", "throughput_lower", "throughput_upper"}, at.throughput);
  cells.text("throughput_unit", prediction.throughput_unit);
  add_expected(cells, {"speedup", "speedup_lower", "speedup_upper"}, at.speedup);
  add_expected(cells, {"efficiency", "efficiency_lower", "efficiency_upper"}, at.efficiency);
  cells.number("noise", at.uncertainty.noise);
  cells.number("launch", at.uncertainty.launch);
  cells.number("fit", at.uncertainty.fit);
  cells.text("extrapolated", at.extrapolated ? "yes" : "no");
  cells.number("simulated", at.simulated);
  cells.number("delay", at.delay);
  cells.number("memory_per_rank", at.memory_per_rank);
  cells.text("fits", !at.fits ? "" : *at.fits ? "yes" : "no");
  cells.number("mfu", at.mfu);
  add_breakdown(cells, at);
  cells.number("ideal", at.waterfall ? std::optional{at.waterfall->ideal} : std::nullopt);
  cells.text("limit", at.limit);
  return cells.take();
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
          {"baseline", number_or_null(prediction.baseline)},
          {"has_efficiency", prediction.has_efficiency()},
          {"correction", number_or_null(prediction.correction)},
          {"measured", array_of(prediction.measured, measured_json)},
          {"curve", curve_json(prediction.base)},
          {"what_if", array_of(prediction.what_if, curve_json)},
          {"limits", Json(prediction.limits)},
          {"next", next_json(prediction.next)},
          {"searched", prediction.searched},
          {"best", array_of(prediction.best, candidate_json)},
          {"best_command", text_or_null(prediction.command)},
          {"batch", number_or_null(prediction.batch)},
          {"tokens_per_step", number_or_null(prediction.tokens_per_step)},
          {"options", prediction.options},
          {"network", text_or_null(prediction.network)},
          {"assumed", prediction.assumed},
          {"warnings", Json(prediction.warnings)}};
}

/// Returns ASCII only, so that printing it on a terminal is safe; bytes that are not UTF-8 are
/// replaced.
std::string render_json(const Prediction& prediction) {
  return prediction_json(prediction).dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

std::string render_csv(const Prediction& prediction) {
  // The heading comes from a point without values.
  std::string text = csv_heading(cells_of({}, {}, {}));
  const auto add = [&](const ForecastCurve& curve) {
    for (const Forecast& at : curve.points) text += csv_values(cells_of(prediction, curve, at));
  };
  add(prediction.base);
  for (const ForecastCurve& curve : prediction.what_if) add(curve);
  return text;
}

}  // namespace isoscale::analysis
