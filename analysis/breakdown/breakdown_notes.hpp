// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <set>
#include <string>

#include "analysis/breakdown/traced_steps.hpp"

namespace isoscale::analysis {

/// What the replays of a point's steps could not know.
struct ReplayNotes {
  std::set<int> assumed;  ///< ranks that were given the op times of like ones
  std::string failure;    ///< why there is none; "" when there is
};

/// In sentences, for BreakdownResult::missing; "" when nothing is missing. `step` in seconds.
[[nodiscard]] std::string missing_text(const results::PointData& point, const TracedSteps& steps,
                                       const ReplayNotes& replay, double step);

}  // namespace isoscale::analysis
