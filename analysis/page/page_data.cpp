// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/page/point_details.hpp"
#include "analysis/page/prune.hpp"
#include "analysis/render/render_json.hpp"
#include "base/build_info.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

/// The levels of detail, from all that a screen can show to the least that is still useful.
constexpr std::array levels{
    DetailLimits{},
    DetailLimits{.steps = 800, .spans = 3200, .columns = 120, .samples = 100, .devices = 8},
    DetailLimits{.steps = 600, .spans = 2500, .columns = 80, .samples = 50, .devices = 6},
    DetailLimits{.steps = 400, .spans = 1600, .columns = 60, .samples = 32, .devices = 6},
    DetailLimits{.steps = 250, .spans = 1000, .columns = 40, .samples = 24, .devices = 4},
    DetailLimits{.steps = 200, .spans = 500, .columns = 30, .samples = 20, .devices = 4},
    DetailLimits{
        .steps = 120, .spans = 300, .columns = 20, .samples = 16, .rows = 64, .devices = 4},
};

/// Bytes of a point's details, by the limit that applies to them.
struct Parts {
  std::size_t steps = 0, spans = 0, cells = 0, devices = 0, rest = 0;

  Parts& operator+=(const Parts& more) {
    steps += more.steps;
    spans += more.spans;
    cells += more.cells;
    devices += more.devices;
    rest += more.rest;
    return *this;
  }
  [[nodiscard]] std::size_t sum() const { return steps + spans + cells + devices + rest; }
};

Parts parts_of(const Json& details) {
  Parts parts;
  const std::size_t map = page_bytes(details["rank_map"]);
  parts.steps = page_bytes(details["steps"]);
  parts.cells = page_bytes(details["rank_map"]["cells"]);
  parts.spans = page_bytes(details["timeline"]);
  parts.devices = page_bytes(details["devices"]);
  constexpr std::size_t keys = 100;
  parts.rest = map - parts.cells + keys;
  return parts;
}

/// Estimates the bytes at another level as if each part were proportional to its limit. For a part
/// that is below its limit, and so does not shrink, the estimate is too low.
double guessed(const Parts& parts, const DetailLimits& limits) {
  const auto scaled = [](std::size_t bytes, std::size_t limit, std::size_t full) {
    return static_cast<double>(bytes) * static_cast<double>(limit) / static_cast<double>(full);
  };
  const DetailLimits& full = levels.front();
  return static_cast<double>(parts.rest) + scaled(parts.steps, limits.steps, full.steps) +
         scaled(parts.spans, limits.spans, full.spans) +
         scaled(parts.cells, limits.columns, full.columns) +
         scaled(parts.devices, limits.samples * limits.devices, full.samples * full.devices);
}

Json all_details(const std::vector<DetailedPoint>& points, const DetailLimits& limits,
                 std::vector<Parts>& parts) {
  Json details = Json::array();
  parts.clear();
  for (const DetailedPoint& at : points) {
    details.push_back(point_details(at, limits));
    parts.push_back(parts_of(details.back()));
  }
  return details;
}

Parts total(const std::vector<Parts>& parts) {
  return std::accumulate(parts.begin(), parts.end(), Parts{},
                         [](Parts sum, const Parts& more) { return sum += more; });
}

/// Leaves out the points with the fewest ranks until the rest fits.
void drop_points(std::vector<DetailedPoint>& points, const std::vector<Parts>& parts,
                 std::size_t most, Json& details, PageNotes& notes) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return points[i].point->data->ranks; });
  std::size_t bytes = total(parts).sum();
  std::set<std::size_t> gone;
  for (const std::size_t i : order) {
    if (bytes <= most) break;
    bytes -= parts[i].sum();
    gone.insert(i);
  }
  if (gone.empty()) return;
  std::vector<DetailedPoint> kept;
  Json of_kept = Json::array();
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (gone.contains(i)) continue;
    kept.push_back(points[i]);
    of_kept.push_back(std::move(details[i]));
  }
  notes.push_back(
      fmt::format("steps, ranks, timelines and devices of {} of {} points are left out, those of "
                  "the fewest ranks: the page would be too large",
                  gone.size(), points.size()));
  points = std::move(kept);
  details = std::move(of_kept);
}

/// True if a row must stay when rows are thinned out.
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

/// Removes rows that take `bytes`, or all if there are fewer.
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

/// Removes a key from all points; returns the bytes saved.
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

/// Returns the indices of the points with the most ranks, one for each curve.
std::set<int> largest_points(const Json& run) {
  std::set<int> largest;
  for (const Json& curve : run["curves"]) {
    if (!curve["points"].empty()) largest.insert(curve["points"].back().get<int>());
  }
  return largest;
}

/// Removes the least used parts from a report of more than `most` bytes: first the breakdown by
/// layer, except for the largest point of each curve, then summaries of devices, since their lines
/// are drawn.
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

/// Shrinks a report until it takes at most `most` bytes. It removes, in this order: rows of
/// micro-benchmarks (evenly, except for failed rows and those of slow pairs; the point then has
/// rows_left_out); the points' parts on places in the program, devices, links, communicators and op
/// times; and all points of the last runs, if there are several. Says so in `notes`.
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

}  // namespace

std::size_t page_bytes(const Json& part) {
  const std::string text = part.dump(-1, ' ', true, Json::error_handler_t::replace);
  constexpr std::size_t escaped = 5;  // added bytes of "<", which is written as "\u003c"
  return text.size() + escaped * static_cast<std::size_t>(std::ranges::count(text, '<'));
}

Json fitting_details(std::vector<DetailedPoint> points, std::size_t most, PageNotes& notes) {
  std::vector<Parts> parts;
  std::size_t level = 0;
  Json details = all_details(points, levels.front(), parts);
  const Parts full = total(parts);
  std::size_t bytes = full.sum();
  while (bytes > most && level + 1 < levels.size()) {
    do {
      ++level;
    } while (level + 1 < levels.size() && guessed(full, levels[level]) > static_cast<double>(most));
    details = all_details(points, levels[level], parts);
    bytes = total(parts).sum();
  }
  if (level > 0) {
    notes.push_back(
        fmt::format("pictures of {} points are coarser than they could be (level {} of {}): the "
                    "page would be too large",
                    points.size(), level, levels.size() - 1));
  }
  drop_points(points, parts, most, details, notes);
  note_details(points, details, levels[level], notes);
  return details;
}

Json page_data(const Report& report, std::size_t most_bytes) {
  PageNotes notes;
  Json pruned = report_json(report);
  prune_report(pruned, DetailLimits{}.devices, notes);
  cut_texts(pruned, notes);
  // The report may take up to two thirds of the room, but its least used parts are removed already
  // above one third. The pictures get the rest.
  constexpr std::size_t reserved = 20'000;  // for notes and the enclosing keys
  const std::size_t room = most_bytes - std::min(most_bytes, reserved);
  ease_report(pruned, room / 3, notes);
  shrink_report(pruned, room - room / 3, notes);
  const std::size_t bytes = page_bytes(pruned);
  Json details = fitting_details(detailed_points(report), room - std::min(room, bytes), notes);
  cut_texts(details, notes);
  Json data{{"kind", "report"},
            {"isoscale_version", base::build_info().version},
            {"report", std::move(pruned)},
            {"details", std::move(details)},
            {"notes", notes}};
  PageNotes of_notes;
  cut_texts(data["notes"], of_notes);
  return data;
}

}  // namespace isoscale::analysis
