// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>

#include "analysis/compare/compare_render.hpp"
#include "analysis/render/text.hpp"

namespace isoscale::analysis {
namespace {

using Cell = std::pair<std::string_view, std::string>;
using Cells = std::vector<Cell>;

std::string list_cell(const std::vector<std::string>& texts) {
  return text_cell(fmt::format("{}", fmt::join(texts, ";")));
}

/// A point of a side. `side` counts from 0, the first side.
struct SidePoint {
  const Comparison* of = nullptr;
  std::size_t curve = 0, side = 0, index = 0;
};

void add_normalised(const SidePoint& at, const SideCurve& side, Cells& cells) {
  const auto add = [&](std::string_view name, std::string_view against,
                       const std::vector<Normalised>& all) {
    cells.emplace_back(name, number_cell(all[at.index].value));
    const Normalised& one = all[at.index];
    cells.emplace_back(against, text_cell(one.value ? one.against : "none: " + one.missing));
  };
  add("of_peak", "of_peak_against", side.of_peak);
  add("per_link_bandwidth", "per_link_bandwidth_against", side.per_link);
  add("per_watt", "per_watt_against", side.per_watt);
}

Cells point_cells(const SidePoint& at) {
  const ComparedCurve& curve = at.of->curves[at.curve];
  const SideCurve& side = *curve.sides[at.side];
  const PointReport& point = side.curve.points[at.index];
  const results::PointData& data = *point.data;
  const statistics::Estimate& time = *point.step_time;
  const bool known = point.speedup_interval && point.speedup_interval->lower;
  const double ideal = point.efficiency ? *point.speedup / *point.efficiency : 1;
  const auto bound = [&](std::optional<double> statistics::Located::*end) {
    return known ? number_cell(*((*point.speedup_interval).*end) / ideal) : "";
  };
  std::vector<std::string> files;
  for (const LaunchPoint& launch : side.joined->launches[at.index]) {
    files.push_back(launch.run->file);
  }
  Cells cells{
      {"curve", text_cell(curve.title)},
      {"baseline", curve.baseline ? std::to_string(*curve.baseline) : ""},
      {"ranks", std::to_string(data.ranks)},
      {"side", at.of->sides[at.side].name},
      {"files", list_cell(files)},
      {"launches", std::to_string(files.size())},
      {"nodes", std::to_string(data.nodes)},
      {"mesh", text_cell(mesh::to_string(data.mesh))},
      {"labels", list_cell(point.labels)},
      {"marks", list_cell(marks_of(*at.of, at.curve, at.side, data.ranks))},
      {"step_time_median", number_cell(time.median)},
      {"step_time_lower", number_cell(time.lower)},
      {"step_time_upper", number_cell(time.upper)},
      {"throughput", number_cell(point.throughput)},
      {"throughput_unit", text_cell(data.throughput_unit)},
      {"flops_per_rank", number_cell(point.flops_per_rank)},
      {"efficiency", number_cell(point.efficiency)},
      {"efficiency_lower", bound(&statistics::Located::lower)},
      {"efficiency_upper", bound(&statistics::Located::upper)},
  };
  add_normalised(at, side, cells);
  return cells;
}

/// Returns the cells of a point's difference; empty for the first side, and where only one side has
/// the point.
Cells difference_cells(const SidePoint& at, int ranks) {
  const Difference none;
  const Difference* const found = difference_of(*at.of, at.curve, at.side, ranks);
  const Difference& difference = found == nullptr ? none : *found;
  const auto number = [found](std::optional<double> value) {
    return found == nullptr ? "" : number_cell(value);
  };
  const statistics::Located efficiency = difference.efficiency.value_or(statistics::Located{});
  const auto points = [&](std::optional<double> value) {
    constexpr double hundred = 100;
    return difference.efficiency && value ? number_cell(hundred * *value) : "";
  };
  std::string causes;
  for (const CausePart& part : difference.why.efficiency) {
    causes += fmt::format("{}{}={:.4g}", causes.empty() ? "" : ";", part.cause, -100 * part.value);
  }
  return {
      {"against", found == nullptr ? "" : at.of->sides.front().name},
      {"throughput_ratio", number(difference.throughput.value)},
      {"throughput_ratio_lower", number(difference.throughput.lower)},
      {"throughput_ratio_upper", number(difference.throughput.upper)},
      {"efficiency_points", points(efficiency.value)},
      {"efficiency_points_lower", points(efficiency.lower)},
      {"efficiency_points_upper", points(efficiency.upper)},
      {"verdict", found == nullptr ? "" : std::string{name(difference.verdict)}},
      {"p_regression", number(difference.p_regression)},
      {"p_passed", number(difference.p_passed)},
      {"why_points", text_cell(causes)},
      {"sentence", found == nullptr ? "" : list_cell(sentences_of(*at.of, difference))},
  };
}

template <class Projection>
std::string line(const Cells& cells, Projection projection) {
  std::string text;
  for (const Cell& cell : cells) {
    if (&cell != &cells.front()) text += ',';
    text += projection(cell);
  }
  return text + "\n";
}

}  // namespace

std::string render_csv(const Comparison& of) {
  std::string heading, text;
  for (std::size_t c = 0; c < of.curves.size(); ++c) {
    for (std::size_t s = 0; s < of.sides.size(); ++s) {
      if (!of.curves[c].sides[s]) continue;
      const auto& points = of.curves[c].sides[s]->curve.points;
      for (std::size_t i = 0; i < points.size(); ++i) {
        const SidePoint at{.of = &of, .curve = c, .side = s, .index = i};
        Cells cells = point_cells(at);
        for (Cell& cell : difference_cells(at, points[i].data->ranks)) {
          cells.push_back(std::move(cell));
        }
        heading = line(cells, [](const Cell& cell) { return cell.first; });
        text += line(cells, [](const Cell& cell) { return cell.second; });
      }
    }
  }
  return heading + text;
}

}  // namespace isoscale::analysis
