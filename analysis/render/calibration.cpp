// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/records/calibration_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "analysis/render/document_and_metrics.hpp"
#include "analysis/render/microbench_tables.hpp"
#include "analysis/render/record_json.hpp"
#include "analysis/render/render.hpp"
#include "base/text.hpp"
#include "results/records/run_and_calibration_fields.hpp"

/// Writes the calibration of a run: the curves and rates fitted to rows of micro-benchmarks.
namespace isoscale::analysis::render {
namespace {

using results::CalibrationCurve;
using results::CalibrationGrowth;
using results::GemmCeiling;

constexpr Metric<CalibrationCurve> fitted_metrics[] = {
    {"op", "op", Unit::text, member<&CalibrationCurve::op>},
    {"dtype", "type", Unit::text, member<&CalibrationCurve::dtype>},
    {"class", "class", Unit::text, member<&CalibrationCurve::link_class>},
    {"implementation", "by", Unit::text, member<&CalibrationCurve::implementation>},
    {"members", "ranks", Unit::count, member<&CalibrationCurve::members>},
    {"nodes", "nodes", Unit::count, member<&CalibrationCurve::nodes>},
    {"labels", "", Unit::text, member<&CalibrationCurve::labels>},
    {"latency", "latency", Unit::seconds, member<&CalibrationCurve::latency>},
    {"bandwidth", "bandwidth", Unit::bandwidth, member<&CalibrationCurve::bandwidth>},
    {"error", "error", Unit::share, member<&CalibrationCurve::error>},
    {"sizes", "sizes", Unit::count, [](auto& at) { return Value(at.samples.size()); }},
};

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

constexpr Metric<CalibrationGrowth> growth_metrics[] = {
    {"op", "op", Unit::text, member<&CalibrationGrowth::op>},
    {"dtype", "type", Unit::text, member<&CalibrationGrowth::dtype>},
    {"class", "class", Unit::text, member<&CalibrationGrowth::link_class>},
    {"implementation", "by", Unit::text, member<&CalibrationGrowth::implementation>},
    {"ranks", "ranks", Unit::text, [](auto& at) { return value_json(base::listed(at.members)); }},
    {"latency", "latency", Unit::text, latency_law},
    {"bandwidth_factor", "bandwidth", Unit::factor, member<&CalibrationGrowth::bandwidth_factor>},
};

constexpr Metric<GemmCeiling> ceiling_metrics[] = {
    {"dtype", "type", Unit::text, member<&GemmCeiling::dtype>},
    {"cache", "caches", Unit::text, member<&GemmCeiling::cache>},
    {"flops", "FLOP/s", Unit::flop_rate, member<&GemmCeiling::rate>},
    {"m", "m", Unit::count, member<&GemmCeiling::m>},
    {"n", "n", Unit::count, member<&GemmCeiling::n>},
    {"k", "k", Unit::count, member<&GemmCeiling::k>},
    {"batch", "batch", Unit::count, member<&GemmCeiling::batch>},
    {"error", "error", Unit::share, member<&GemmCeiling::error>},
    {"labels", "", Unit::text, member<&GemmCeiling::labels>},
};

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
      table(fitted_metrics, calibration.curves, "time against size",
            fmt::format("op dtype class implementation members {}sizes latency bandwidth error "
                        "labels",
                        with_nodes ? "nodes " : "")),
      table(growth_metrics, calibration.growth, "growth with the ranks of a group",
            "op dtype class ranks latency bandwidth_factor"),
      table(ceiling_metrics, calibration.ceilings,
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
