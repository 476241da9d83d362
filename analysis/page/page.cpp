// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/page.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/compare/compare_render.hpp"
#include "analysis/output_file.hpp"
#include "analysis/page/point_details.hpp"
#include "analysis/render/curve_tables_and_remarks.hpp"
#include "analysis/render/microbench_tables.hpp"
#include "analysis/render/summary_findings_and_index.hpp"
#include "analysis/render/table_cells.hpp"
#include "base/build_info.hpp"
#include "base/error.hpp"
#include "base/warn.hpp"

namespace isoscale::analysis::page {

namespace {

using Json = nlohmann::ordered_json;

/// The placeholder for the data, which the page contains exactly once.
constexpr std::string_view place = "{\"isoscale\":\"data\"}";

/// Describes the metrics by table and key. Metrics of points that `output` (render::in_page or
/// render::in_compare) includes are marked `shown`.
Json metrics_json(unsigned output) {
  Json parts = Json::object();
  for (const render::Category& part : render::categories()) {
    parts[std::string{part.name}] = {{"heading", part.name},
                                     {"form", form(Unit::seconds)},
                                     {"unit", name(Unit::seconds)},
                                     {"sentence", part.meaning}};
  }
  Json rates = Json::object();
  for (const compare::Rate& rate : compare::rates) {
    rates[std::string{rate.key}] = {{"heading", rate.name}, {"form", form(rate.of)}};
  }
  return {{"part", parts},
          {"rate", rates},
          {"point", described(render::point_metrics(), output)},
          {"pop", described(render::pop_metrics())},
          {"row", described(render::row_metrics())},
          {"overlap", described(render::overlap_metrics())},
          {"class", described(render::class_metrics())},
          {"inference", described(render::inference_metrics())},
          {"forecast", described(predict::forecast_metrics())},
          {"experiment", described(render::index_experiment_metrics())},
          {"trend", described(render::index_trend_metrics())}};
}

/// Returns the data of a page of this `kind`, which consists of `part` under the key `name`.
Json data_of(const char* kind, const char* name, Json part, const PageNotes& notes = {}) {
  return {{"kind", kind},
          {"isoscale_version", base::build_info().version},
          {name, std::move(part)},
          {"metrics", metrics_json(render::in_compare)},
          {"notes", notes}};
}

}  // namespace

std::string inert(const nlohmann::ordered_json& data) {
  const std::string json = data.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  std::string text;
  text.reserve(json.size());
  for (const char& c : json) text += c == '<' ? "\\u003c" : std::string_view{&c, 1};
  return text;
}

void require_page() {
  if (page_asset()) return;
  throw base::UsageError(
      "--html: this build has no page to write. It was built without npm, or where npm could reach "
      "no registry; install npm and build again, build from a release's tarball, or give CMake the "
      "page of another build: -DISOSCALE_PAGE=.../page.html. All other formats work without");
}

std::string page_document(const nlohmann::ordered_json& data) {
  require_page();
  const std::string_view page = *page_asset();
  const std::size_t at = page.find(place);
  if (at == std::string_view::npos) throw base::Error("the embedded page has no place for data");
  std::string document{page.substr(0, at)};
  document += inert(data);
  document += page.substr(at + place.size());
  return document;
}

std::size_t page_bytes(const Json& part) { return inert(part).size(); }

Json page_data(const merge::Report& report, std::size_t most_bytes) {
  PageNotes notes;
  Json pruned = render::report_json(report);
  prune_report(pruned, notes);
  // The report may take two thirds of the room. The details of points take what it leaves.
  constexpr std::size_t reserved = 40'000;  // bytes for metrics, notes and the enclosing keys
  const std::size_t room = most_bytes - std::min(most_bytes, reserved);
  sample_report(pruned, room - room / 3, notes);
  const std::size_t bytes = page_bytes(pruned);
  Json details = sampled_details(detailed_points(report), room - std::min(room, bytes), notes);
  return {{"kind", "report"},
          {"isoscale_version", base::build_info().version},
          {"report", std::move(pruned)},
          {"details", std::move(details)},
          {"metrics", metrics_json(render::in_page)},
          {"notes", notes}};
}

Json page_data(const compare::Comparison& comparison) {
  return data_of("compare", "compare", compare::compare_json(comparison));
}

Json page_data(const render::IndexReport& report) {
  return data_of("index", "report", render::index_report_json(report));
}

Json page_data(const predict::Prediction& prediction) {
  PageNotes notes;
  Json predicted = predict::prediction_json(prediction);
  thin_curves(predicted, notes);
  return data_of("predict", "prediction", std::move(predicted), notes);
}

template <class Result>
void write_page(const Result& result, const std::filesystem::path& path,
                settings::IfExists if_exists) {
  if (path.empty()) return;
  const std::string document = page_document(page_data(result));
  write_output_file("--html", path, if_exists, [&](std::ostream& out) { out << document; });
  base::warn(fmt::format("wrote {}; open it in a browser", path.string()));
}
template void write_page(const merge::Report&, const std::filesystem::path&, settings::IfExists);
template void write_page(const compare::Comparison&, const std::filesystem::path&,
                         settings::IfExists);
template void write_page(const render::IndexReport&, const std::filesystem::path&,
                         settings::IfExists);
template void write_page(const predict::Prediction&, const std::filesystem::path&,
                         settings::IfExists);

}  // namespace isoscale::analysis::page
