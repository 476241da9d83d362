// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/devices/device_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/point_facts.hpp"
#include "analysis/render/json_values.hpp"
#include "analysis/render/text_escape.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_warnings = 4;  // of a point; a run of many ranks has many devices

std::string cell(std::optional<double> value, std::string_view unit) {
  return value ? units::format_prefixed(*value, unit) : std::string{undefined};
}

std::string celsius_cell(std::optional<double> kelvin) {
  constexpr double freezing = 273.15;
  return kelvin ? fmt::format("{:.0f} °C", *kelvin - freezing) : std::string{undefined};
}

/// Whether a row would say anything.
bool has_numbers(const DeviceState& state) {
  return state.clock || state.temperature || state.utilisation || state.energy.power;
}

/// Of the first point that was sampled: all points of a run compute on one kind of device.
std::string title_of(const Curve& curve) {
  for (const PointReport& point : curve.points) {
    if (!point.devices.energy.of.empty()) return point.devices.energy.of + " beside the loop";
  }
  return "";
}

}  // namespace

std::vector<TitledTable> device_tables(const Curve& curve) {
  TitledTable devices{.title = title_of(curve),
                      .columns = {{"ranks"},
                                  {"clock"},
                                  {"lowest"},
                                  {"busy"},
                                  {"hottest"},
                                  {"power"},
                                  {"energy/step"},
                                  {"energy/token"}},
                      .rows = {}};
  for (const PointReport& point : curve.points) {
    const DeviceState& state = point.devices;
    if (!has_numbers(state)) continue;
    devices.rows.push_back(
        {.cells = {std::to_string(point.data->ranks), cell(state.clock, "Hz"),
                   cell(state.clock_min, "Hz"), percent(state.utilisation),
                   celsius_cell(state.temperature), cell(state.energy.power, "W"),
                   cell(state.energy.joules_per_step, "J"),
                   cell(state.energy.joules_per_token, "J")},
         .tail = ""});
  }
  if (devices.rows.empty()) return {};
  return {std::move(devices)};
}

Facts device_remarks(const Curve& curve) {
  Facts facts;
  std::vector<std::string> missing;
  for (const PointReport& point : curve.points) {
    const std::vector<std::string>& warnings = point.devices.warnings;
    const std::string ranks =
        fmt::format("{} rank{}", point.data->ranks, point.data->ranks == 1 ? "" : "s");
    for (std::size_t i = 0; i < std::min(warnings.size(), most_warnings); ++i) {
      facts.emplace_back("WARNING", fmt::format("{}: {}", ranks, escape(warnings[i])));
    }
    if (warnings.size() > most_warnings) {
      facts.emplace_back("WARNING", fmt::format("{}: {} more about devices", ranks,
                                                warnings.size() - most_warnings));
    }
    const std::string& why = point.devices.energy.missing;
    if (!why.empty() && std::ranges::find(missing, why) == missing.end()) missing.push_back(why);
  }
  for (const std::string& why : missing) facts.emplace_back("energy", "none: " + why);
  return facts;
}

Json device_state_json(const PointReport& point) {
  const DeviceState& state = point.devices;
  if (state.series.empty() && state.warnings.empty()) return {};
  Json series = Json::array();
  for (const SeriesSummary& at : state.series) {
    series.push_back({{"rank", at.rank},
                      {"world_rank", world_rank(*point.data, at.rank)},
                      {"device", at.device},
                      {"quantity", at.quantity},
                      {"unit", at.unit},
                      {"min", number_or_null(at.minimum)},
                      {"median", number_or_null(at.median)},
                      {"max", number_or_null(at.maximum)},
                      {"first", at.first},
                      {"last", at.last},
                      {"samples", at.samples}});
  }
  return {{"energy_of", state.energy.of},
          {"power", number_or_null(state.energy.power)},
          {"energy", number_or_null(state.energy.joules)},
          {"energy_per_step", number_or_null(state.energy.joules_per_step)},
          {"energy_per_token", number_or_null(state.energy.joules_per_token)},
          {"energy_missing", state.energy.missing.empty() ? Json{} : Json(state.energy.missing)},
          {"clock", number_or_null(state.clock)},
          {"clock_min", number_or_null(state.clock_min)},
          {"temperature_max", number_or_null(state.temperature)},
          {"utilisation", number_or_null(state.utilisation)},
          {"warnings", Json(state.warnings)},
          {"series", series}};
}

}  // namespace isoscale::analysis
