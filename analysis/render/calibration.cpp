// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/records/calibration_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "analysis/render/bench_tables.hpp"
#include "analysis/render/document.hpp"
#include "analysis/render/record_json.hpp"
#include "analysis/render/render.hpp"
#include "base/text.hpp"
#include "results/records/layout.hpp"

/// Writes the calibration of a run: the curves and rates that were fitted to the rows of
/// micro-benchmarks.
namespace isoscale::analysis::render {
namespace {

using results::CalibrationCurve;
using results::CalibrationGrowth;
using results::GemmCeiling;

Metrics<CalibrationCurve> fitted_metrics() {
  using enum Unit;
  using C = CalibrationCurve;
  static constexpr Metric<CalibrationCurve> all[] = {
      {"op", "op", text, member<&C::op>},
      {"dtype", "type", text, member<&C::dtype>},
      {"class", "class", text, member<&C::link_class>},
      {"implementation", "by", text, member<&C::implementation>},
      {"members", "ranks", count, member<&C::members>},
      {"nodes", "nodes", count, member<&C::nodes>},
      {"labels", "", text, member<&C::labels>},
      {"latency", "latency", seconds, member<&C::latency>},
      {"bandwidth", "bandwidth", bandwidth, member<&C::bandwidth>},
      {"error", "error", share, member<&C::error>},
      {"sizes", "sizes", count, [](auto& at) { return Value(at.samples.size()); }},
  };
  return all;
}

/// Returns the fitted law of latency for n ranks, such as "4.1 us + 1.2 us x log2 n"; if no law was
/// fitted, the latencies of the smallest and of the largest group.
Value latency_law(const CalibrationGrowth& at) {
  const auto time = [](double value) { return figure(value, Unit::seconds); };
  if (!at.law.empty()) return fmt::format("{} + {} x {}", time(at.base), time(at.slope), at.law);
  const bool known =
      !at.latency.empty() && std::isfinite(at.latency.front()) && std::isfinite(at.latency.back());
  return known ? fmt::format("{} to {}", time(at.latency.front()), time(at.latency.back()))
               : std::string{undefined};
}

Metrics<CalibrationGrowth> growth_metrics() {
  using enum Unit;
  using G = CalibrationGrowth;
  static constexpr Metric<CalibrationGrowth> all[] = {
      {"op", "op", text, member<&G::op>},
      {"dtype", "type", text, member<&G::dtype>},
      {"class", "class", text, member<&G::link_class>},
      {"implementation", "by", text, member<&G::implementation>},
      {"ranks", "ranks", text, [](auto& at) { return value_json(base::listed(at.members)); }},
      {"latency", "latency", text, latency_law},
      {"bandwidth_factor", "bandwidth", factor, member<&G::bandwidth_factor>},
  };
  return all;
}

Metrics<GemmCeiling> ceiling_metrics() {
  using enum Unit;
  using C = GemmCeiling;
  static constexpr Metric<GemmCeiling> all[] = {
      {"dtype", "type", text, member<&C::dtype>},
      {"cache", "caches", text, member<&C::cache>},
      {"flops", "FLOP/s", flop_rate, member<&C::rate>},
      {"m", "m", count, member<&C::m>},
      {"n", "n", count, member<&C::n>},
      {"k", "k", count, member<&C::k>},
      {"batch", "batch", count, member<&C::batch>},
      {"error", "error", share, member<&C::error>},
      {"labels", "", text, member<&C::labels>},
  };
  return all;
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
                        with_nodes ? "nodes " : "")),
      table(growth_metrics(), calibration.growth, "growth with the ranks of a group",
            "op dtype class ranks latency bandwidth_factor"),
      table(ceiling_metrics(), calibration.ceilings,
            "best multiplication of each type: what MFU is read against",
            "dtype cache flops m n k batch error labels")};
  std::erase_if(tables, [](const DocumentTable& at) { return at.rows.empty(); });
  return tables;
}

Json calibration_json(const results::CalibrationData& calibration) {
  if (calibration.empty()) return Json::object();
  Json object = record_json(calibration);
  for (std::size_t i = 0; i < calibration.curves.size(); ++i) {
    for (std::size_t j = 0; j < calibration.curves[i].samples.size(); ++j) {
      const results::CurveSample& at = calibration.curves[i].samples[j];
      object["curves"][i]["samples"][j]["residual"] = number_or_null(at.time / at.fitted - 1);
    }
  }
  for (const char* const shapes : {"gemms", "ceilings"}) {
    for (Json& shape : object[shapes]) {
      const Json rate = shape["rate"];
      shape.erase("rate");
      shape["flops"] = rate;
    }
  }
  return object;
}

}  // namespace isoscale::analysis::render
