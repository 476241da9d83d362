// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/comparison.hpp"

namespace isoscale::analysis {

/// Names for sides that were given none: that of the file, or what its files' names begin with;
/// else of their folders; else of the GPU, the CPU or the hosts. Whichever is short and tells all
/// sides apart; else empty, which join_sides() takes for letters.
[[nodiscard]] std::vector<std::string> default_names(
    const std::vector<std::span<const RunReport>>& sides);

/// The kinds of machines that launches ran on, as an index of runs names them.
[[nodiscard]] std::vector<std::string> machine_names(const Side& side);

/// Joins the launches of each side; without `names` they are "A", "B", ... Throws base::UsageError
/// where a run, by its id or file, is on two sides.
[[nodiscard]] std::vector<Side> join_sides(const std::vector<std::span<const RunReport>>& sides,
                                           const std::vector<std::string>& names);

/// Fills curves, what is unlike, and what only one side has. Throws base::UsageError where a side
/// has no curve in common with the first, or no curve the baseline asked for.
void set_side_by_side(Comparison& comparison, const CompareOptions& options);

}  // namespace isoscale::analysis
