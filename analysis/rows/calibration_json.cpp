// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/render/json_values.hpp"
#include "analysis/rows/rows_json.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

Json fitted_json(const std::optional<results::Fitted>& fitted) {
  if (!fitted) return {};
  return {{"value", number_or_null(fitted->value)},
          {"lower", number_or_null(fitted->lower)},
          {"upper", number_or_null(fitted->upper)}};
}

Json samples_json(const std::vector<results::CurveSample>& samples) {
  Json list = Json::array();
  for (const results::CurveSample& at : samples) {
    list.push_back({{"bytes", number_or_null(at.bytes)},
                    {"time", number_or_null(at.time)},
                    {"fitted", number_or_null(at.fitted)},
                    {"residual", number_or_null(at.time / at.fitted - 1)},
                    {"held_out", number_or_null(at.held_out)}});
  }
  return list;
}

template <class Row>
Json kind_json(const Row& row) {
  return {{"op", row.op},
          {"dtype", text_or_null(row.dtype)},
          {"class", text_or_null(row.link_class)},
          {"implementation", text_or_null(row.implementation)}};
}

Json growth_json(const results::CalibrationGrowth& at) {
  Json counts = Json::array();
  for (std::size_t i = 0; i < at.members.size(); ++i) {
    counts.push_back({{"members", at.members[i]},
                      {"latency", number_or_null(at.latency[i])},
                      {"bandwidth", number_or_null(at.bandwidth[i])}});
  }
  Json object = kind_json(at);
  object["law"] = text_or_null(at.law);
  object["base"] = number_or_null(at.base);
  object["slope"] = number_or_null(at.slope);
  object["bandwidth_factor"] = number_or_null(at.bandwidth_factor);
  object["counts"] = counts;
  return object;
}

template <class Row>
Json shape_json(const Row& at) {
  return {{"dtype", at.dtype}, {"cache", text_or_null(at.cache)},
          {"m", at.m},         {"n", at.n},
          {"k", at.k},         {"batch", at.batch},
          {"flops", at.rate},  {"labels", text_or_null(at.labels)}};
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
    curve["labels"] = text_or_null(at.labels);
    curve["latency"] = fitted_json(at.latency);
    curve["bandwidth"] = fitted_json(at.bandwidth);
    curve["error"] = number_or_null(at.error);
    curve["form"] = at.form;
    curve["samples"] = samples_json(at.samples);
    curves.push_back(curve);
  }
  for (const results::CalibrationGrowth& at : calibration.growth) growth.push_back(growth_json(at));
  for (const results::GemmRate& at : calibration.gemms) {
    Json shape = shape_json(at);
    shape["held_out"] = number_or_null(at.held_out);
    gemms.push_back(shape);
  }
  for (const results::GemmCeiling& at : calibration.ceilings) {
    Json shape = shape_json(at);
    shape["error"] = number_or_null(at.error);
    ceilings.push_back(shape);
  }
  return {{"device", text_or_null(calibration.device)},
          {"curves", curves},
          {"growth", growth},
          {"gemms", gemms},
          {"ceilings", ceilings}};
}

}  // namespace isoscale::analysis
