// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <utility>

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

/// From all that a screen can show to what still tells something.
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

/// Bytes of a point's details by what limits them.
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

/// What the parts would be at another level if all of each were what its limit is about. They are
/// more where a part is below its limit already.
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

/// Leaves the points of fewest ranks out until the rest fits.
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

}  // namespace

std::size_t page_bytes(const Json& part) {
  const std::string text = part.dump(-1, ' ', true, Json::error_handler_t::replace);
  constexpr std::size_t escaped = 5;  // "<" stands as "\u003c"
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

}  // namespace isoscale::analysis
