// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>

#include "analysis/causes/cause_tables.hpp"

/// Tables with a column for each point of a curve.
namespace isoscale::analysis {

[[nodiscard]] Points points_with(const Curve& curve,
                                 const std::function<bool(const PointReport&)>& has);
/// "1 rank", "8 ranks".
[[nodiscard]] std::string ranks_heading(const PointReport& point);
/// An empty table: what a row is, then a column for each point.
[[nodiscard]] TitledTable by_ranks(std::string title, const Points& points);

}  // namespace isoscale::analysis
