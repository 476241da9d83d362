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
  double factor = 1;           ///< least transfer time a byte over that of the others
};

/// Compares the transfer time a byte, from the last arrival on, of groups that run the same kind of
/// collective along the same axes, and of pairs that exchange along the same axis. Each op counts
/// with the least time that it took in a traced step: what else the machine does only adds to it.
/// Slow is who takes at least 1.25 times the median of all so, and more than 1.15 times with each
/// op's median over traced steps, so that the others' luck in one step names nobody; of two groups,
/// 1.5 times the other, and 1.25 in the median. A group alone has nothing to be compared with,
/// and of one with a member that was not traced nothing is known; nor below three traced steps.
[[nodiscard]] std::vector<SlowLink> slow_links(const results::PointData& point,
                                               const TracedSteps& steps);

/// Ranks that are in all of several slow links: what they may share. Empty for fewer than two.
[[nodiscard]] std::vector<int> shared_by(const std::vector<SlowLink>& links);

}  // namespace isoscale::analysis
