// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/rows/rows_json.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

Json number(std::optional<double> value) {
  return value && std::isfinite(*value) ? Json(*value) : Json{};
}

Json text(const std::string& value) { return value.empty() ? Json{} : Json(value); }

Json fitted_json(const std::optional<results::Fitted>& fitted) {
  if (!fitted) return {};
  return {{"value", number(fitted->value)},
          {"lower", number(fitted->lower)},
          {"upper", number(fitted->upper)}};
}

Json samples_json(const std::vector<results::CurveSample>& samples) {
  Json list = Json::array();
  for (const results::CurveSample& at : samples) {
    list.push_back({{"bytes", number(at.bytes)},
                    {"time", number(at.time)},
                    {"fitted", number(at.fitted)},
                    {"residual", number(at.time / at.fitted - 1)},
                    {"held_out", number(at.held_out)}});
  }
  return list;
}

template <class Row>
Json kind_json(const Row& row) {
  return {{"op", row.op},
          {"dtype", text(row.dtype)},
          {"class", text(row.link_class)},
          {"implementation", text(row.implementation)}};
}

Json growth_json(const results::CalibrationGrowth& at) {
  Json counts = Json::array();
  for (std::size_t i = 0; i < at.members.size(); ++i) {
    counts.push_back({{"members", at.members[i]},
                      {"latency", number(at.latency[i])},
                      {"bandwidth", number(at.bandwidth[i])}});
  }
  Json object = kind_json(at);
  object["law"] = text(at.law);
  object["base"] = number(at.base);
  object["slope"] = number(at.slope);
  object["bandwidth_factor"] = number(at.bandwidth_factor);
  object["counts"] = counts;
  return object;
}

template <class Row>
Json shape_json(const Row& at) {
  return {{"dtype", at.dtype}, {"cache", text(at.cache)},
          {"m", at.m},         {"n", at.n},
          {"k", at.k},         {"batch", at.batch},
          {"flops", at.rate},  {"labels", text(at.labels)}};
}

}  // namespace

Json calibration_json(const results::CalibrationData& calibration) {
  if (calibration.empty()) return Json::object();
  Json curves = Json::array(), growth = Json::array(), gemms = Json::array(),
       ceilings = Json::array();
  for (const results::CalibrationCurve& at : calibration.curves) {
    Json curve = kind_json(at);
    curve["members"] = at.members;
    curve["nodes"] = at.nodes;
    curve["labels"] = text(at.labels);
    curve["latency"] = fitted_json(at.latency);
    curve["bandwidth"] = fitted_json(at.bandwidth);
    curve["error"] = number(at.error);
    curve["form"] = at.form;
    curve["samples"] = samples_json(at.samples);
    curves.push_back(curve);
  }
  for (const results::CalibrationGrowth& at : calibration.growth) growth.push_back(growth_json(at));
  for (const results::GemmRate& at : calibration.gemms) {
    Json shape = shape_json(at);
    shape["held_out"] = number(at.held_out);
    gemms.push_back(shape);
  }
  for (const results::GemmCeiling& at : calibration.ceilings) {
    Json shape = shape_json(at);
    shape["error"] = number(at.error);
    ceilings.push_back(shape);
  }
  return {{"device", text(calibration.device)},
          {"curves", curves},
          {"growth", growth},
          {"gemms", gemms},
          {"ceilings", ceilings}};
}

}  // namespace isoscale::analysis
