// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/prediction_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>

#include "analysis/output_file.hpp"
#include "analysis/page/page.hpp"
#include "analysis/page/prune.hpp"
#include "analysis/predict/prediction_render.hpp"
#include "base/build_info.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

/// At most `most` of `points`, evenly over them, both ends among them.
void thin(Json& points, std::size_t most) {
  const std::size_t count = points.size();
  if (count <= most) return;
  Json kept = Json::array();
  for (std::size_t i = 0; i < most; ++i) {
    kept.push_back(std::move(points[i * (count - 1) / (most - 1)]));
  }
  points = std::move(kept);
}

/// Base and what-ifs have the same rank counts, and keep the same.
void thin_curves(Json& prediction, PageNotes& notes) {
  const std::size_t counts = prediction["curve"]["points"].size();
  Json& what_if = prediction["what_if"];
  constexpr std::size_t fewest = 2;  // both ends
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

}  // namespace

Json prediction_page_data(const Prediction& prediction) {
  PageNotes notes;
  Json predicted = prediction_json(prediction);
  thin_curves(predicted, notes);
  cut_texts(predicted, notes);
  return {{"kind", "predict"},
          {"isoscale_version", base::build_info().version},
          {"prediction", std::move(predicted)},
          {"notes", notes}};
}

void write_prediction_page_file(const Prediction& prediction, const std::filesystem::path& path,
                                config::IfExists if_exists) {
  const std::string document = page_document(prediction_page_data(prediction));
  write_output_file("--html", path, if_exists, [&](std::ostream& out) { out << document; });
}

}  // namespace isoscale::analysis
