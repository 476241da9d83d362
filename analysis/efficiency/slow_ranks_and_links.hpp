// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/efficiency/pop_factors_and_losses.hpp"
#include "results/records/run_data.hpp"
#include "statistics/quantiles_and_fits.hpp"

/// Finds the reasons why the points of a curve are not faster, among them ranks and links that are
/// slower than their peers.
namespace isoscale::analysis::efficiency {

/// A rank whose own GEMMs take longer than those of other ranks.
struct SlowRank {
  int rank = 0;       ///< rank of the point
  double factor = 1;  ///< its GEMM time / that of its peers, median over steps (from `since` on)
  std::optional<double> lower, upper;  ///< 95% interval; absent if step times are correlated
  std::optional<std::uint32_t> since;  ///< the first slow step; absent if all steps are slow
  bool by_rate = false;                ///< true if time per FLOP was compared among all ranks
};

/// Finds slow ranks by the rule of docs/breakdown.md. It compares each rank's GEMM time of every
/// traced step with the median of its peers, the ranks that run the same program; of two peers,
/// each is compared with the other. If only one rank runs some program, and the FLOP of all ranks
/// are known, each rank's time per FLOP is also compared with the median of all ranks, with wider
/// limits, since the shapes of GEMMs differ. If the times of steps are correlated, there is no
/// interval; then the factor of every step must exceed the limit for the interval's lower end, and
/// their median a higher limit.
///
/// If a rank becomes slower during the run by more than 3%, only the steps after its last change
/// count (statistics::last_change). Steps in which some peer has no time above 0 are left out.
[[nodiscard]] std::vector<SlowRank> slow_ranks(const results::PointData& point);

/// A group of ranks that communicates slower than other groups of the same kind.
struct SlowLink {
  std::string op{}, axes{};    ///< "all_reduce", "dp"; the group of an exchange is a pair
  std::vector<int> members{};  ///< ranks of the point
  double factor = 1;           ///< its least transfer time per byte / that of other groups
};

/// Finds slow links by the rule of docs/breakdown.md. It compares the transfer time per byte,
/// without waiting for members, among groups that run the same kind of collective along the same
/// axes, and among pairs that exchange along the same axis. The time of an op is the least in any
/// traced step, since other activity of the machine only makes it longer; the median over steps is
/// compared too, so that a single fast step of other groups has no effect. A group is not judged if
/// it is the only one of its kind, or if in no traced step all its members have a trace and an
/// aligned clock. Barriers, and exchanges with several partners, are left out. Empty for fewer than
/// three traced steps.
[[nodiscard]] std::vector<SlowLink> slow_links(const results::PointData& point,
                                               const breakdown::TracedSteps& steps);

/// Returns the ranks that are members of all the slow links, which suggests a common cause. Empty
/// for fewer than two links.
[[nodiscard]] std::vector<int> shared_by(const std::vector<SlowLink>& links);

/// A problem of a rank, a link or a point, with its likely cause.
struct NamedCause {
  std::string kind;        ///< "slow rank", "slow link", "imbalance", "noise", "waiting"
  std::vector<int> ranks;  ///< ranks of the point; empty = no single rank is the cause
  double size = 0;         ///< slow ranks and links: factor of the time; others: share of the step
  std::string text;        ///< one sentence, with hosts and devices
};

/// Returns the named causes of a point (docs/breakdown.md) in this order: slow ranks, slow links,
/// and waiting as imbalance and noise, or as "waiting" if these cannot be told apart. Slow ranks
/// and links are not named if the point has the label oversubscribed, which is reason enough.
[[nodiscard]] std::vector<NamedCause> named_causes(const results::RunData& run,
                                                   const results::PointData& point,
                                                   const breakdown::TracedSteps& traced,
                                                   const breakdown::BreakdownResult& breakdown);

/// The reasons why a point is not faster.
struct Causes {
  std::optional<Pop> pop{};          ///< includes scalability if the curve has a baseline
  std::optional<StepCosts> costs{};  ///< absent without traces
  /// Absent without a baseline, without traces of both points, and for the baseline itself.
  std::optional<Waterfall> waterfall{};
  std::optional<statistics::Located> serial_fraction{};  ///< Karp and Flatt's; strong scaling only
  std::vector<NamedCause> named{};
};

}  // namespace isoscale::analysis::efficiency
