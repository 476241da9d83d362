// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/launches/joined_json.hpp"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "analysis/causes/causes_json.hpp"
#include "analysis/curves.hpp"
#include "analysis/render/json_values.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

/// Of steps inside a launch, or of launches: `samples` is how many.
Json time_json(const std::optional<Estimate>& time, const char* samples) {
  const auto field = [&time](auto member) { return time ? Json(*time.*member) : Json{}; };
  Json object{{"median", field(&Estimate::median)},
              {"lower", time ? number_or_null(time->lower) : Json{}},
              {"upper", time ? number_or_null(time->upper) : Json{}},
              {"min", field(&Estimate::minimum)},
              {"max", field(&Estimate::maximum)}};
  object[samples] = time ? time->samples : 0;
  return object;
}

Json launch_json(const LaunchPoint& at) {
  return {{"run", at.run->data->id},
          {"file", at.run->file},
          {"index", at.point->data->index},
          {"step_time", time_json(at.point->step_time, "steps")},
          {"throughput", number_or_null(at.point->throughput)},
          {"verified", number_or_null(at.point->data->verified)}};
}

Json mesh_json(const mesh::Shape& mesh) {
  return {{"dp", mesh.dp}, {"tp", mesh.tp}, {"pp", mesh.pp}, {"cp", mesh.cp}, {"ep", mesh.ep}};
}

Json interval_json(const std::optional<Located>& located) {
  if (!located || !located->lower || !located->upper) return {};
  return Json::array({*located->lower, *located->upper});
}

/// Where a step of the typical launch went, and what the point lost against the joined baseline:
/// what the same launch lost against its own baseline is in its run.
void add_typical(const PointReport& point, Json& object) {
  object["launch"] = point.launch;
  object["traced_step"] = number_or_null(point.traced_step);
  object["breakdown"] = breakdown_json(point);
  object["hidden_communication"] = hidden_communication_json(point);
  object["breakdown_missing"] = point.breakdown.missing;
  add_losses_json(point, object);
}

Json point_json(const PointReport& point, std::span<const LaunchPoint> launches) {
  Json rows = Json::array();
  for (const LaunchPoint& at : launches) {
    rows.push_back(launch_json(at));
    // It is the one whose causes stand for the point.
    rows.back()["typical"] = at.point->data == point.data;
  }
  Json object{
      {"ranks", point.data->ranks},
      {"nodes", point.data->nodes},
      {"ranks_per_node", ranks_per_node_json(point)},
      {"mesh", mesh_json(point.data->mesh)},
      {"axes", axes_json(point)},
      {"labels", Json(point.labels)},
      {"launches", rows},
      {"step_time", time_json(point.step_time, "launches")},
      {"spread", number_or_null(spread_of(point))},
      {"throughput",
       {{"value", number_or_null(point.throughput)}, {"unit", point.data->throughput_unit}}},
      {"speedup", number_or_null(point.speedup)},
      {"speedup_interval", interval_json(point.speedup_interval)},
      {"efficiency", number_or_null(point.efficiency)}};
  add_typical(point, object);
  return object;
}

Json left_out_json(const LeftOut& left_out) {
  Json row = launch_json(left_out.at);
  row["ranks"] = left_out.at.point->data->ranks;
  row["reason"] = left_out.reason;
  return row;
}

Json curve_json(const JoinedCurve& joined) {
  Json points = Json::array(), left_out = Json::array();
  for (std::size_t i = 0; i < joined.launches.size(); ++i) {
    points.push_back(point_json(joined.curve.points[i], joined.launches[i]));
  }
  for (const LeftOut& at : joined.left_out) left_out.push_back(left_out_json(at));
  return {{"fingerprint", joined.fingerprint},
          {"title", joined.curve.title},
          {"workload", joined.experiment.workload},
          {"model", joined.experiment.model},
          {"dtype", joined.experiment.dtype},
          {"scaling", joined.experiment.scaling},
          {"placement", joined.experiment.placement},
          {"options", Json(joined.experiment.options)},
          {"model_numbers", Json(joined.experiment.numbers)},
          {"settings", Json(joined.experiment.settings)},
          {"machine", Json(joined.machine)},
          {"apart", joined.apart},
          {"baseline", number_or_null(joined.curve.baseline)},
          {"baseline_unit", joined.curve.per_node ? "node" : "rank"},
          {"baseline_name", text_or_null(baseline_name(joined.curve))},
          {"baseline_unsure", has_unsure_baseline(joined.curve)},
          {"points", points},
          {"left_out", left_out},
          {"laws", laws_json(joined.curve.laws)}};
}

}  // namespace

Json ranks_per_node_json(const PointReport& point) {
  if (!point.nodes) return {};
  return {{"fewest", point.nodes->fewest}, {"most", point.nodes->most}};
}

Json axes_json(const PointReport& point) {
  Json axes = Json::object();
  if (!point.nodes) return axes;
  for (const auto& [axis, reach] : point.nodes->axes) {
    axes[std::string{mesh::name(axis)}] = mesh::name(reach);
  }
  return axes;
}

Json joined_json(const Joined& joined) {
  Json curves = Json::array();
  for (const JoinedCurve& curve : joined.curves) curves.push_back(curve_json(curve));
  return curves;
}

}  // namespace isoscale::analysis
