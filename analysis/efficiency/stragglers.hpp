// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/breakdown/traced_steps.hpp"
#include "results/records/run_data.hpp"

/// Finds ranks and links that are slower than their peers.
namespace isoscale::analysis::efficiency {

/// A rank whose own GEMMs take longer than those of others.
struct SlowRank {
  int rank = 0;       ///< rank of the point
  double factor = 1;  ///< its GEMM time over the others', median over steps (from `since` on)
  std::optional<double> lower, upper;  ///< 95%; absent where steps depend on each other
  std::optional<std::uint32_t> since;  ///< the first slow step; absent: slow from the beginning
  bool by_rate = false;                ///< compared by time per FLOP with ranks of other programs
};

/// Compares each rank's GEMM time of every traced step with the median of the ranks that play the
/// same program (of two ranks, with the other one). If some rank is the only one to play a program,
/// each rank's time per FLOP is also compared with the median of all ranks; the limits in brackets
/// are for this comparison and wider, since shapes differ. A rank is slow if it takes at least 5%
/// (15%) longer, its interval begins above 3% (10%), and it stands out from the spread of its
/// peers, beyond four scaled median deviations where there are at least four. If steps depend on
/// each other, there is no interval: instead, all steps must be above 3% (10%) and their median
/// above 10% (25%). Fewer than 6 steps give no result. A rank that becomes slower during the run is
/// judged by the steps after its last change (statistics/trend.hpp, at least 3%). Steps in which
/// some peer has no time above 0 are left out.
[[nodiscard]] std::vector<SlowRank> slow_ranks(const results::PointData& point);

/// Ranks that transfer the same bytes slower than other ranks do.
struct SlowLink {
  std::string op{}, axes{};    ///< "all_reduce", "dp"; exchanges are of pairs
  std::vector<int> members{};  ///< ranks of the point
  double factor = 1;           ///< least transfer time per byte over that of the others
};

/// Compares the transfer time per byte, from the last arrival on, among groups that run the same
/// kind of collective along the same axes, and among pairs that exchange along the same axis. For
/// each op it takes the least time in any traced step, since other activity of the machine only
/// adds to it. A group is slow at 1.25 times the median of all groups or more. It must also exceed
/// 1.15 times the median when each op has its median over traced steps, so that a single lucky step
/// of other groups does not count. Of two groups, one is slow at 1.5 times the other, and 1.25
/// times with medians. Groups without others of their kind, with a member that was not traced, or
/// with fewer than three traced steps are not judged.
[[nodiscard]] std::vector<SlowLink> slow_links(const results::PointData& point,
                                               const breakdown::TracedSteps& steps);

/// Returns the ranks that all of several slow links have in common, which hints at a shared cause.
/// Empty for fewer than two links.
[[nodiscard]] std::vector<int> shared_by(const std::vector<SlowLink>& links);

}  // namespace isoscale::analysis::efficiency
