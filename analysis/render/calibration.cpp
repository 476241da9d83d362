// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/records/calibration_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "analysis/render/bench_tables.hpp"
#include "analysis/render/document.hpp"
#include "analysis/render/render.hpp"
#include "base/text.hpp"

/// Writes what was fitted to the rows of micro-benchmarks.
namespace isoscale::analysis::render {
namespace {

using results::CalibrationCurve;
using results::CalibrationGrowth;
using results::GemmCeiling;
using results::GemmRate;

Value samples_json(const CalibrationCurve& curve) {
  return list_json(curve.samples, [](const results::CurveSample& at) {
    return Json{{"bytes", number_or_null(at.bytes)},
                {"time", number_or_null(at.time)},
                {"fitted", number_or_null(at.fitted)},
                {"residual", number_or_null(at.time / at.fitted - 1)},
                {"held_out", number_or_null(at.held_out)}};
  });
}

Metrics<CalibrationCurve> fitted_metrics() {
  using enum Unit;
  using C = CalibrationCurve;
  static constexpr Metric<CalibrationCurve> all[] = {
      {"op", "op", text, plain<&C::op>},
      {"dtype", "type", text, member<&C::dtype>},
      {"class", "class", text, member<&C::link_class>},
      {"implementation", "by", text, member<&C::implementation>},
      {"members", "ranks", count, member<&C::members>},
      {"nodes", "", count,  // 0 = not known, as in the file
       [](auto& at) { return Value(at.nodes.value_or(0)); }},
      {"~known_nodes", "nodes", count, member<&C::nodes>},
      {"labels", "", text, member<&C::labels>},
      {"latency", "latency", seconds, member<&C::latency>},
      {"bandwidth", "bandwidth", bandwidth, member<&C::bandwidth>},
      {"error", "error", share, member<&C::error>},
      {"form", "form", text, plain<&C::form>},
      {"samples", "", text, samples_json},
      {"~sizes", "sizes", count, [](auto& at) { return Value(at.samples.size()); }},
  };
  return all;
}

/// Returns the fitted latency among n ranks, "4.1 us + 1.2 us x log2 n"; if no law was fitted, the
/// latencies at the smallest and at the largest rank count.
Value latency_law(const CalibrationGrowth& at) {
  const auto time = [](double value) { return figure(value, Unit::seconds); };
  if (!at.law.empty()) return fmt::format("{} + {} x {}", time(at.base), time(at.slope), at.law);
  const bool known =
      !at.latency.empty() && std::isfinite(at.latency.front()) && std::isfinite(at.latency.back());
  return known ? fmt::format("{} to {}", time(at.latency.front()), time(at.latency.back()))
               : std::string{undefined};
}

Value counts_json(const CalibrationGrowth& at) {
  Json counts = Json::array();
  for (std::size_t i = 0; i < at.members.size(); ++i) {
    counts.push_back({{"members", at.members[i]},
                      {"latency", number_or_null(at.latency[i])},
                      {"bandwidth", number_or_null(at.bandwidth[i])}});
  }
  return counts;
}

Metrics<CalibrationGrowth> growth_metrics() {
  using enum Unit;
  using G = CalibrationGrowth;
  static constexpr Metric<CalibrationGrowth> all[] = {
      {"op", "op", text, plain<&G::op>},
      {"dtype", "type", text, member<&G::dtype>},
      {"class", "class", text, member<&G::link_class>},
      {"implementation", "by", text, member<&G::implementation>},
      {"~ranks", "ranks", text, [](auto& at) { return value_json(base::listed(at.members)); }},
      {"~latency", "latency", text, latency_law},
      {"law", "law", text, member<&G::law>},
      {"base", "base", seconds, member<&G::base>},
      {"slope", "slope", seconds, member<&G::slope>},
      {"bandwidth_factor", "bandwidth", factor, member<&G::bandwidth_factor>},
      {"counts", "", text, counts_json},
  };
  return all;
}

/// Returns the metrics of a GEMM's shape and rate; `last` is the metric that differs between kinds
/// of rows.
template <class Row>
constexpr auto multiplication_metrics(const Metric<Row>& last) {
  return std::to_array<Metric<Row>>({{"dtype", "type", Unit::text, plain<&Row::dtype>},
                                     {"cache", "caches", Unit::text, member<&Row::cache>},
                                     {"m", "m", Unit::count, member<&Row::m>},
                                     {"n", "n", Unit::count, member<&Row::n>},
                                     {"k", "k", Unit::count, member<&Row::k>},
                                     {"batch", "batch", Unit::count, member<&Row::batch>},
                                     {"flops", "FLOP/s", Unit::flop_rate, member<&Row::rate>},
                                     {"labels", "", Unit::text, member<&Row::labels>},
                                     last});
}
constexpr auto rate_metrics = multiplication_metrics<GemmRate>(
    {"held_out", "error", Unit::share, member<&GemmRate::held_out>});
constexpr auto ceiling_metrics = multiplication_metrics<GemmCeiling>(
    {"error", "error", Unit::share, member<&GemmCeiling::error>});

/// Returns a list with a JSON object for each item.
template <class Item>
Json list_of(std::type_identity_t<Metrics<Item>> metrics, const std::vector<Item>& items) {
  return list_json(items, [&](const Item& item) { return object_of<Item>(metrics, item); });
}

}  // namespace

std::vector<DocumentTable> calibration_tables(const RunReport& report) {
  const results::CalibrationData& calibration = report.calibration;
  // On a single node the column of nodes would always show 1, so it is left out.
  const bool with_nodes =
      std::ranges::any_of(calibration.curves, [](auto& at) { return at.nodes > 1; });
  const auto table = [](const auto& metrics, const auto& items, std::string title,
                        const std::string& keys) {
    using Item = typename std::decay_t<decltype(items)>::value_type;
    DocumentTable made = table_of<Item>(metrics, pointers_to(items), keys);
    made.title = std::move(title);
    return made;
  };
  std::vector<DocumentTable> tables{
      table(fitted_metrics(), calibration.curves, "time against size",
            fmt::format("op dtype class implementation members {}sizes latency bandwidth error "
                        "labels",
                        with_nodes ? "known_nodes " : "")),
      table(growth_metrics(), calibration.growth, "growth with the ranks of a group",
            "op dtype class ranks latency bandwidth_factor"),
      table(ceiling_metrics, calibration.ceilings,
            "best multiplication of each type: what MFU is read against",
            "dtype cache flops m n k batch error labels")};
  std::erase_if(tables, [](const DocumentTable& at) { return at.rows.empty(); });
  return tables;
}

Json calibration_json(const results::CalibrationData& calibration) {
  if (calibration.empty()) return Json::object();
  return {{"device", text_or_null(calibration.device)},
          {"curves", list_of<CalibrationCurve>(fitted_metrics(), calibration.curves)},
          {"growth", list_of<CalibrationGrowth>(growth_metrics(), calibration.growth)},
          {"gemms", list_of<GemmRate>(rate_metrics, calibration.gemms)},
          {"ceilings", list_of<GemmCeiling>(ceiling_metrics, calibration.ceilings)}};
}

}  // namespace isoscale::analysis::render
