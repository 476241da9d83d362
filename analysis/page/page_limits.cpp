// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/render/escaped_text_and_tables.hpp"
#include "base/text.hpp"

namespace isoscale::analysis::page {
namespace {

using Json = nlohmann::ordered_json;

/// The most ranks and kinds that a page lists for a run, and the most hosts that it lists for a
/// kind.
constexpr std::size_t most_places = 512, most_kinds = 32, most_hosts = 8;

/// Returns a value as ASCII JSON; bytes that are not UTF-8 are replaced.
std::string text_of(const Json& value) {
  return value.dump(-1, ' ', true, Json::error_handler_t::replace);
}

/// Returns the host of a rank; "" if it has no name, which is null in JSON.
std::string host_name(const Json& rank) {
  const Json& host = rank.at("host");
  return host.is_null() ? std::string{} : host.get<std::string>();
}

/// Returns the keys of the facts in `part` ("text" or "number") that kinds_of_ranks() leaves out.
std::set<std::string> own_keys(const Json& ranks, const char* part) {
  std::set<std::string> own{"gpu_uuid", "gpu_pci", "gpu_serial", "gpu_nvlink_peers", "bound_cpus"};
  // The values of each key by host; a key is shared if two ranks of a host have the same value.
  std::map<std::string, std::map<std::string, std::set<std::string>>> by_key;
  std::set<std::string> compared, shared;
  for (const Json& rank : ranks) {
    for (const auto& [key, value] : rank.at(part).items()) {
      auto& seen = by_key[key][host_name(rank)];
      if (!seen.empty()) compared.insert(key);
      const bool is_new = seen.insert(text_of(value)).second;
      if (!is_new) shared.insert(key);
    }
  }
  std::ranges::set_difference(compared, shared, std::inserter(own, own.end()));
  return own;
}

Json without(Json object, const std::set<std::string>& keys) {
  for (const std::string& key : keys) object.erase(key);
  return object;
}

/// Returns lists of the ranks and the hosts of the first most_places ranks.
Json places_of(const Json& ranks) {
  Json places{{"rank", Json::array()}, {"host", Json::array()}};
  for (std::size_t i = 0; i < std::min(ranks.size(), most_places); ++i) {
    for (auto& [key, column] : places.items()) column.push_back(ranks[i].at(key));
  }
  return places;
}

void prune_system(Json& system, const std::string& file, PageNotes& notes) {
  const Json ranks = std::move(system["ranks"]);
  system.erase("ranks");
  Json kinds = kinds_of_ranks(ranks);
  if (kinds.size() > most_kinds) {
    notes.push_back(fmt::format("{}: its ranks are of {} kinds, the {} largest are listed", file,
                                kinds.size(), most_kinds));
    kinds.erase(kinds.begin() + most_kinds, kinds.end());
  }
  system["kinds"] = std::move(kinds);
  system["places"] = places_of(ranks);
  if (ranks.size() > most_places) {
    notes.push_back(fmt::format("{}: of its {} ranks, the places of the first {} are listed", file,
                                ranks.size(), most_places));
  }
}

/// Keeps the first 200 warnings of a run, since more are not readable on a page.
void prune_warnings(Json& run, PageNotes& notes) {
  constexpr std::size_t most = 200;
  Json& warnings = run["warnings"];
  if (warnings.size() <= most) return;
  notes.push_back(fmt::format("{} of {} warnings of {} are left out", warnings.size() - most,
                              warnings.size(), run.at("file").get<std::string>()));
  warnings.erase(warnings.begin() + most, warnings.end());
}

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

}  // namespace

Json kinds_of_ranks(const Json& ranks) {
  const std::set<std::string> own_text = own_keys(ranks, "text");
  const std::set<std::string> own_number = own_keys(ranks, "number");
  struct Kind {
    Json text, number;
    std::vector<int> ranks{};
    std::set<std::string> hosts{};
  };
  std::vector<Kind> kinds;
  std::map<std::string, std::size_t> places;
  for (const Json& rank : ranks) {
    Json text = without(rank.at("text"), own_text), number = without(rank.at("number"), own_number);
    const auto [at, is_new] = places.try_emplace(text_of(Json{text, number}), kinds.size());
    if (is_new) kinds.push_back({.text = std::move(text), .number = std::move(number)});
    Kind& kind = kinds[at->second];
    kind.ranks.push_back(rank.at("rank").get<int>());
    kind.hosts.insert(host_name(rank));
  }
  std::ranges::stable_sort(kinds, std::ranges::greater{},
                           [](const Kind& kind) { return kind.ranks.size(); });
  Json result = Json::array();
  for (const auto& [text, number, in_kind, in_hosts] : kinds) {
    std::vector<std::string> hosts(in_hosts.begin(), in_hosts.end());
    std::ranges::sort(hosts, render::before_naturally);
    hosts.resize(std::min(hosts.size(), most_hosts));
    result.push_back({{"ranks", base::ranges_text(in_kind)},
                      {"count", in_kind.size()},
                      {"hosts", hosts},
                      {"more_hosts", in_hosts.size() - hosts.size()},
                      {"text", text},
                      {"number", number}});
  }
  return result;
}

void prune_report(Json& report, PageNotes& notes) {
  for (Json& run : report["runs"]) {
    prune_system(run["system"], run.at("file").get<std::string>(), notes);
    if (run["preflight"].is_object()) run["preflight"].erase("facts");
    prune_warnings(run, notes);
    for (Json& point : run["points"]) {
      for (const char* const part :
           {"breakdown_of_rank", "traced_gemms", "communicators", "link_share", "op_time"}) {
        point.erase(part);
      }
      if (point["device_state"].is_object()) point["device_state"].erase("series");
    }
  }
}

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

Json sampled_details(const std::vector<DetailedPoint>& points, std::size_t most, PageNotes& notes) {
  constexpr std::size_t fewest = 64'000;
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return points[i].point->data->ranks; });
  std::size_t left = std::min(points.size(), std::max<std::size_t>(1, most / fewest));
  std::vector<Json> made(points.size());
  for (const std::size_t i : std::span{order}.last(left)) {
    const std::size_t share = most / left--;  // NOLINT(clang-analyzer-core.DivideZero): left > 0
    Json details = point_details(points[i], limits_within(*points[i].point->data, share));
    const std::size_t bytes = page_bytes(details) + 1;
    if (bytes > most) continue;  // long names can exceed the estimate of limits_within()
    most -= bytes;
    made[i] = std::move(details);
  }
  Json details = Json::array();
  for (Json& of_point : made) {
    if (!of_point.is_null()) details.push_back(std::move(of_point));
  }
  note_shown({.shown = details.size(), .all = points.size()},
             "points have pictures of steps, ranks, timeline and devices, those of the most ranks",
             notes);
  return details;
}

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

}  // namespace isoscale::analysis::page
