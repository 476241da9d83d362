// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/causes/point_tables.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <utility>

namespace isoscale::analysis {

Points points_with(const Curve& curve, const std::function<bool(const PointReport&)>& has) {
  Points points;
  for (const PointReport& point : curve.points) {
    if (has(point)) points.push_back(&point);
  }
  return points;
}

std::string ranks_heading(const PointReport& point) {
  return base::counted(point.data->ranks, "rank");
}

TitledTable by_ranks(std::string title, const Points& points) {
  TitledTable result{
      .title = std::move(title) + of_launches(points), .columns = {{"", Align::left}}, .rows = {}};
  for (const PointReport* const point : points) result.columns.push_back({ranks_heading(*point)});
  return result;
}

}  // namespace isoscale::analysis
