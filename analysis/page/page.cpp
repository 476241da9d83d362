// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>
#include <utility>

#include "analysis/compare/compare_render.hpp"
#include "analysis/output_file.hpp"
#include "analysis/page/asset.hpp"
#include "analysis/page/prune.hpp"
#include "base/build_info.hpp"
#include "base/error.hpp"

namespace isoscale::analysis::page {

namespace {

using Json = nlohmann::ordered_json;

/// The placeholder that the data replaces; the page contains it once.
constexpr std::string_view place = "{\"isoscale\":\"data\"}";

/// Keeps at most `most` of `points`, evenly spread, including the first and the last.
void thin(Json& points, std::size_t most) {
  const std::size_t count = points.size();
  if (count <= most) return;
  Json kept = Json::array();
  for (std::size_t i = 0; i < most; ++i) {
    kept.push_back(std::move(points[i * (count - 1) / (most - 1)]));
  }
  points = std::move(kept);
}

/// Removes the same rank counts from the curve of the base and from those of the what-ifs.
void thin_curves(Json& prediction, PageNotes& notes) {
  const std::size_t counts = prediction["curve"]["points"].size();
  Json& what_if = prediction["what_if"];
  constexpr std::size_t fewest = 2;  // the first and the last
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

/// Returns the data of a page: its kind, and one part under the key `name`.
Json data_of(const char* kind, const char* name, Json part, PageNotes notes = {}) {
  cut_texts(part, notes);
  return {{"kind", kind},
          {"isoscale_version", base::build_info().version},
          {name, std::move(part)},
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

void write_page_file(const Json& data, const std::filesystem::path& path,
                     settings::IfExists if_exists) {
  const std::string document = page_document(data);
  write_output_file("--html", path, if_exists, [&](std::ostream& out) { out << document; });
}

}  // namespace isoscale::analysis::page
