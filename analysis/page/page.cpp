// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ostream>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/compare/compare_render.hpp"
#include "analysis/output_file.hpp"
#include "analysis/page/point_details.hpp"
#include "analysis/render/bench_tables.hpp"
#include "analysis/render/curve_tables.hpp"
#include "analysis/render/report_parts.hpp"
#include "analysis/render/table_cells.hpp"
#include "base/build_info.hpp"
#include "base/error.hpp"
#include "base/log.hpp"

namespace isoscale::analysis::page {

namespace {

using Json = nlohmann::ordered_json;

/// The placeholder for the data, which the page contains exactly once.
constexpr std::string_view place = "{\"isoscale\":\"data\"}";

/// Keeps at most `most` of `points`: the first, the last, and others spread evenly between them.
void thin(Json& points, std::size_t most) {
  const std::size_t count = points.size();
  if (count <= most) return;
  Json kept = Json::array();
  for (std::size_t i = 0; i < most; ++i) {
    kept.push_back(std::move(points[i * (count - 1) / (most - 1)]));
  }
  points = std::move(kept);
}

/// Limits the points of a prediction to most_page_forecasts: the last what-ifs are removed if they
/// are too many, and all curves keep the same rank counts, spread evenly.
void thin_curves(Json& prediction, PageNotes& notes) {
  const std::size_t counts = prediction["curve"]["points"].size();
  Json& what_if = prediction["what_if"];
  constexpr std::size_t fewest = 2;  // points that each curve keeps: the first and the last
  constexpr std::size_t most_curves = most_page_forecasts / fewest;
  if (what_if.size() + 1 > most_curves) {
    notes.push_back(fmt::format("{} of {} what-ifs are shown", most_curves - 1, what_if.size()));
    what_if.erase(what_if.begin() + (most_curves - 1), what_if.end());
  }
  const std::size_t most = std::max(fewest, most_page_forecasts / (what_if.size() + 1));
  if (counts <= most) return;
  notes.push_back(fmt::format("{} of {} rank counts of each curve are shown", most, counts));
  thin(prediction["curve"]["points"], most);
  for (Json& curve : what_if) thin(curve["points"], most);
}

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
Json data_of(const char* kind, const char* name, Json part, PageNotes notes = {}) {
  cut_texts(part, notes);
  return {{"kind", kind},
          {"isoscale_version", base::build_info().version},
          {name, std::move(part)},
          {"metrics", metrics_json(render::in_compare)},
          {"notes", notes}};
}

/// Returns the details of points, in at most `most` bytes in all. If each point would get less than
/// `fewest` bytes, only those with the most ranks have details. Points are served in ascending
/// order of ranks; each gets an equal share of the bytes that are left.
Json sampled_details(const std::vector<DetailedPoint>& points, std::size_t most, PageNotes& notes) {
  constexpr std::size_t fewest = 64'000;
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return points[i].point->data->ranks; });
  std::size_t left = std::min(points.size(), std::max<std::size_t>(1, most / fewest));
  std::vector<Json> made(points.size());
  for (const std::size_t i : std::span{order}.last(left)) {
    Json details = point_details(points[i], limits_within(*points[i].point->data, most / left--));
    const std::size_t bytes = page_bytes(details) + 1;
    if (bytes > most) continue;  // long names can exceed the estimate of limits_within()
    most -= bytes;
    made[i] = std::move(details);
  }
  Json details = Json::array();
  std::vector<DetailedPoint> shown;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (made[i].is_null()) continue;
    details.push_back(std::move(made[i]));
    shown.push_back(points[i]);
  }
  note_shown({.shown = shown.size(), .all = points.size()},
             "points have pictures of steps, ranks, timeline and devices, those of the most ranks",
             notes);
  note_details(shown, details, notes);
  return details;
}

/// True if a row must stay on the page: it is not ok, or it measures a slow pair of ranks.
bool matters(const Json& row, const std::set<std::pair<int, int>>& slow) {
  if (row.contains("status") && row["status"] != "ok") return true;
  const auto is_rank = [&](const char* key) { return row.contains(key) && row[key].is_number(); };
  return is_rank("src") && is_rank("dst") &&
         slow.contains({row["src"].get<int>(), row["dst"].get<int>()});
}

/// Keeps about `share` (0 to 1) of a point's rows, and all rows that matter (see matters()).
void thin_rows(Json& point, double share) {
  std::set<std::pair<int, int>> slow;
  for (const Json& at : point["slow_pairs"]) {
    slow.insert({at["src"].get<int>(), at["dst"].get<int>()});
  }
  constexpr std::size_t few = 64;  // rows; a point with at most so many keeps all
  Json& rows = point["rows"];
  if (rows.size() <= few) return;
  Json kept = Json::array();
  double credit = 1;
  for (Json& row : rows) {
    credit += share;
    const bool is_due = credit >= 1;
    if (is_due) credit -= 1;
    if (is_due || matters(row, slow)) kept.push_back(std::move(row));
  }
  rows = std::move(kept);
}

/// Removes rows that together take about `bytes`, spread evenly. Rows that matter (see matters())
/// and all rows of points with at most 64 rows stay, even if the others take less than `bytes`.
void sample_rows(Json& report, std::size_t bytes, PageNotes& notes) {
  std::size_t of_rows = 0;
  Shown rows;
  for (const Json& run : report["runs"]) {
    for (const Json& point : run["points"]) {
      of_rows += page_bytes(point["rows"]);
      rows.all += point["rows"].size();
    }
  }
  const double share =
      of_rows > bytes ? static_cast<double>(of_rows - bytes) / static_cast<double>(of_rows) : 0.0;
  for (Json& run : report["runs"]) {
    for (Json& point : run["points"]) {
      thin_rows(point, share);
      rows.shown += point["rows"].size();
    }
  }
  note_shown(rows,
             "rows of micro-benchmarks are shown, with all that failed and all slow pairs; "
             "report --format json has all",
             notes);
}

/// Keeps the layers that take most time: `most_layers` in all, but at least `fewest` of each point.
void sample_layers(Json& report, PageNotes& notes) {
  constexpr std::size_t most_layers = 6000, fewest = 8;
  std::vector<Json*> split;
  for (Json& run : report["runs"]) {
    for (Json& point : run["points"]) {
      if (point["breakdown_by"].is_object()) split.push_back(&point["breakdown_by"]["layer"]);
    }
  }
  const auto seconds = [](const Json& layer) {
    double sum = 0;
    for (const Json& part : layer) sum += part.is_number() ? part.get<double>() : 0.0;
    return sum;
  };
  Shown layers;
  for (Json* const at : split) {
    const std::size_t most = std::max(fewest, most_layers / split.size());
    std::vector<double> times;
    for (const Json& layer : *at) times.push_back(seconds(layer));
    layers.all += times.size();
    layers.shown += std::min(times.size(), most);
    if (times.size() <= most) continue;
    std::ranges::sort(times, std::ranges::greater{});
    Json kept = Json::object();
    for (auto& [name, layer] : at->items()) {
      if (kept.size() < most && seconds(layer) >= times[most - 1]) kept[name] = std::move(layer);
    }
    *at = std::move(kept);
  }
  note_shown(layers,
             "layers are shown in breakdowns, those that take the most time; report "
             "--format json has all",
             notes);
}

/// Reduces a report to at most `most` bytes, as far as possible. It removes layers beyond a fixed
/// number, then rows of micro-benchmarks, then all points of launches, from the last launch on.
void sample_report(Json& report, std::size_t most, PageNotes& notes) {
  sample_layers(report, notes);
  std::size_t bytes = page_bytes(report);
  if (bytes > most) {
    sample_rows(report, bytes - most, notes);
    bytes = page_bytes(report);
  }
  Json& runs = report["runs"];
  std::size_t shown = runs.size();
  while (shown > 1 && bytes > most) {
    Json& points = runs[--shown]["points"];
    bytes -= std::min(bytes, page_bytes(points));
    points = Json::array();
  }
  note_shown({.shown = shown, .all = runs.size()},
             "launches have their own points, the first; the joined curves are of all launches",
             notes);
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
  cut_texts(pruned, notes);
  // The report may take two thirds of the room. The details of points take what it leaves.
  constexpr std::size_t reserved = 40'000;  // bytes for metrics, notes and the enclosing keys
  const std::size_t room = most_bytes - std::min(most_bytes, reserved);
  sample_report(pruned, room - room / 3, notes);
  const std::size_t bytes = page_bytes(pruned);
  Json details = sampled_details(detailed_points(report), room - std::min(room, bytes), notes);
  cut_texts(details, notes);
  Json data{{"kind", "report"},
            {"isoscale_version", base::build_info().version},
            {"report", std::move(pruned)},
            {"details", std::move(details)},
            {"metrics", metrics_json(render::in_page)},
            {"notes", notes}};
  PageNotes of_notes;
  cut_texts(data["notes"], of_notes);
  return data;
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
  return data_of("predict", "prediction", std::move(predicted), std::move(notes));
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
