// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "analysis/breakdown/traced_steps.hpp"
#include "results/run_data.hpp"

namespace isoscale::analysis {

/// Ranks that move the same bytes slower than others who do the same.
struct SlowLink {
  std::string op{}, axes{};    ///< "all_reduce", "dp"; exchanges are of pairs
  std::vector<int> members{};  ///< ranks of the point
  double factor = 1;           ///< transfer time a byte over that of the others, whole trace
};

/// Compares the transfer time a byte, from the last arrival on, of groups that run the same kind of
/// collective along the same axes, and of pairs that exchange along the same axis. Slow is who
/// takes at least 1.25 times the median of all, and 1.15 times in each traced step; of two groups,
/// 1.5 times the other, and 1.25 in each step. A group alone has nothing to be compared with.
[[nodiscard]] std::vector<SlowLink> slow_links(const results::PointData& point,
                                               const TracedSteps& steps);

/// Ranks that are in all of several slow links: what they may share. Empty for fewer than two.
[[nodiscard]] std::vector<int> shared_by(const std::vector<SlowLink>& links);

}  // namespace isoscale::analysis
