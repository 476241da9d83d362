// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "analysis/merge/join.hpp"
#include "analysis/page/detail_limits.hpp"

namespace isoscale::analysis {

/// A point that a page has pictures of. Nothing is owned.
struct DetailedPoint {
  std::size_t run = 0;  ///< into Report::runs
  const RunReport* report = nullptr;
  const PointReport* point = nullptr;
};

/// Of one run all its points with step times; of several the typical launch's of each joined point.
[[nodiscard]] std::vector<DetailedPoint> detailed_points(const Report& report);

/// What pictures of a point are drawn from: run, point, ranks, steps, rank_map, timeline, devices.
[[nodiscard]] nlohmann::ordered_json point_details(const DetailedPoint& at,
                                                   const DetailLimits& limits);

/// Adds to `notes` what was thinned out of the points to make `details`.
void note_details(const std::vector<DetailedPoint>& points, const nlohmann::ordered_json& details,
                  const DetailLimits& limits, PageNotes& notes);

}  // namespace isoscale::analysis
