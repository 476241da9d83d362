// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/comparison.hpp"

namespace isoscale::analysis {

/// "A", "B", ... "Z", "side 27".
[[nodiscard]] std::string side_name(std::size_t side);

/// Joins the launches of each side. Throws base::UsageError where a run, by its id or file, is on
/// two sides.
[[nodiscard]] std::vector<Side> join_sides(const std::vector<std::span<const RunReport>>& sides);

/// Fills curves, what is unlike, and what only one side has. Throws base::UsageError where a side
/// has no curve in common with the first, or no curve the baseline asked for.
void set_side_by_side(Comparison& comparison, const CompareOptions& options);

}  // namespace isoscale::analysis
