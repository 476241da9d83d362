// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/compare/comparison.hpp"

namespace isoscale::analysis::compare {

/// Returns names for sides that the user did not name, from the first source whose names are short
/// and all different: file names (or the common beginning of a side's file names), folders, GPUs,
/// CPUs, hosts. Returns an empty list if there is none; join_sides() then uses letters.
[[nodiscard]] std::vector<std::string> default_names(
    const std::vector<std::span<const RunReport>>& sides);

/// Returns the kinds of machines that the side's launches ran on, by their names in a run index.
[[nodiscard]] std::vector<std::string> machine_names(const Side& side);

/// Joins the launches of each side; without `names` the sides are "A", "B", ... Throws
/// base::UsageError where a run, by its id or file, is on two sides.
[[nodiscard]] std::vector<Side> join_sides(const std::vector<std::span<const RunReport>>& sides,
                                           const std::vector<std::string>& names);

/// Fills in the compared curves, the unlike settings, and the curves and points that only one side
/// has. Throws base::UsageError where a side has no curve in common with the first, or where no
/// curve has the baseline that was asked for.
void set_side_by_side(Comparison& comparison, const CompareOptions& options);

}  // namespace isoscale::analysis::compare
