// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/shrink_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/page/budget.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

/// Whether a row must stay when rows are thinned out.
bool matters(const Json& row, const std::set<std::pair<int, int>>& slow) {
  if (row.contains("status") && row["status"] != "ok") return true;
  const auto is_rank = [&](const char* key) { return row.contains(key) && row[key].is_number(); };
  return is_rank("src") && is_rank("dst") &&
         slow.contains({row["src"].get<int>(), row["dst"].get<int>()});
}

/// Keeps about `share` of a point's rows.
void thin_rows(Json& point, double share) {
  std::set<std::pair<int, int>> slow;
  for (const Json& at : point["slow_pairs"]) {
    slow.insert({at["src"].get<int>(), at["dst"].get<int>()});
  }
  constexpr std::size_t few = 64;
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
  point["rows_left_out"] = rows.size() - kept.size();
  rows = std::move(kept);
}

/// Takes `bytes` of rows away, if there are so many.
void shrink_rows(Json& report, std::size_t bytes, PageNotes& notes) {
  std::size_t all = 0;
  for (const Json& run : report["runs"]) {
    for (const Json& point : run["points"]) all += page_bytes(point["rows"]);
  }
  if (all == 0) return;
  const double share =
      all > bytes ? static_cast<double>(all - bytes) / static_cast<double>(all) : 0.0;
  std::size_t left_out = 0, points = 0;
  for (Json& run : report["runs"]) {
    for (Json& point : run["points"]) {
      thin_rows(point, share);
      if (!point.contains("rows_left_out")) continue;
      left_out += point["rows_left_out"].get<std::size_t>();
      ++points;
    }
  }
  notes.push_back(
      fmt::format("{} rows of {} micro-benchmarks are left out, every so many of them: "
                  "the page would be too large; report --format json has all",
                  left_out, points));
}

/// Takes a key out of all points; how many bytes that saved.
std::size_t erase_everywhere(Json& report, std::string_view key) {
  std::size_t saved = 0;
  for (Json& run : report["runs"]) {
    for (Json& point : run["points"]) {
      const auto found = point.find(std::string{key});
      if (found == point.end()) continue;
      saved += page_bytes(*found);
      *found = nullptr;
    }
  }
  return saved;
}

/// Indices of the points of most ranks, one a curve.
std::set<int> largest_points(const Json& run) {
  std::set<int> largest;
  for (const Json& curve : run["curves"]) {
    if (!curve["points"].empty()) largest.insert(curve["points"].back().get<int>());
  }
  return largest;
}

}  // namespace

void ease_report(Json& report, std::size_t most, PageNotes& notes) {
  std::size_t bytes = page_bytes(report);
  if (bytes <= most) return;
  std::size_t points = 0;
  for (Json& run : report["runs"]) {
    const std::set<int> largest = largest_points(run);
    for (Json& point : run["points"]) {
      Json& by = point["breakdown_by"];
      if (!by.is_object() || by["layer"].empty() || largest.contains(point["index"])) continue;
      bytes -= std::min(bytes, page_bytes(by["layer"]));
      by["layer"] = Json::object();
      ++points;
    }
  }
  if (points > 0) {
    notes.push_back(
        fmt::format("the breakdown by layer is left out for {} points, all but the largest of each "
                    "curve; report --format json has it",
                    points));
  }
  if (bytes <= most) return;
  std::size_t series = 0;
  for (Json& run : report["runs"]) {
    for (Json& point : run["points"]) {
      Json& state = point["device_state"];
      if (!state.is_object() || !state.contains("series")) continue;
      series += state["series"].size();
      state["series"] = Json::array();
    }
  }
  if (series == 0) return;
  notes.push_back(fmt::format(
      "summaries of all {} series of devices are left out; report --format json has them", series));
}

void shrink_report(Json& report, std::size_t most, PageNotes& notes) {
  std::size_t bytes = page_bytes(report);
  if (bytes <= most) return;
  shrink_rows(report, bytes - most, notes);
  bytes = page_bytes(report);
  for (const std::string_view key :
       {"breakdown_by", "device_state", "link_share", "communicators", "op_time"}) {
    if (bytes <= most) return;
    const std::size_t saved = erase_everywhere(report, key);
    if (saved == 0) continue;
    bytes -= std::min(bytes, saved);
    notes.push_back(
        fmt::format("{} of points is left out: the page would be too large; report --format json "
                    "has it",
                    key));
  }
  std::size_t runs = 0;
  Json& all = report["runs"];
  for (std::size_t i = all.size(); i > 1 && bytes > most; --i) {
    bytes -= std::min(bytes, page_bytes(all[i - 1]["points"]));
    all[i - 1]["points"] = Json::array();
    ++runs;
  }
  if (runs == 0) return;
  notes.push_back(fmt::format(
      "points of {} of {} launches are left out: the page would be too large; the joined curves "
      "are of all launches",
      runs, all.size()));
}

}  // namespace isoscale::analysis
