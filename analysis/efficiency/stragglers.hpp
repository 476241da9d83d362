// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/breakdown/traced_steps.hpp"
#include "results/run_data.hpp"

/// Finds ranks and links that are slower than their like.
namespace isoscale::analysis {

/// A rank whose own GEMMs take longer than those of others.
struct SlowRank {
  int rank = 0;       ///< of the point
  double factor = 1;  ///< its GEMM time over the others', median over steps (from `since` on)
  std::optional<double> lower, upper;  ///< 95%; absent where steps depend on each other
  std::optional<std::uint32_t> since;  ///< number of the step from which on; absent: all along
  bool by_rate = false;                ///< compared by time per FLOP with ranks of other programs
};

/// Compares each rank's GEMM time of every traced step with the median of the ranks that play the
/// same program, of two with the other; where some rank plays a program alone, also the time per
/// FLOP of every rank with the median of all, for which shapes differ. Slow is who takes at least
/// 5% longer (by rate 15%), whose interval begins above 3% (10%), and who stands out from the
/// spread of its like: beyond four scaled median deviations where there are at least four. Below 6
/// steps nothing is said; where steps depend on each other so that there is no interval, all have
/// to be above and the middle one above 10% (25%). A rank that becomes slower on the way is judged
/// by the steps after its last change (statistics/trend.hpp, at least 3%). Steps in
/// which some peer has no time above 0 are left out.
[[nodiscard]] std::vector<SlowRank> slow_ranks(const results::PointData& point);

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
