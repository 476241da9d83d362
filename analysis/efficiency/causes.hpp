// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/efficiency/losses.hpp"
#include "results/records/run_data.hpp"
#include "statistics/robust.hpp"

/// Finds the reasons why the points of a curve are not faster, among them ranks and links that are
/// slower than their peers, and fits scaling laws to the curve.
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
/// traced step with the median of its peers, the ranks that play the same program; of two peers,
/// each is compared with the other. If only one rank plays some program, and the FLOP of all ranks
/// are known, each rank's time per FLOP is also compared with the median of all ranks, with wider
/// limits, since the shapes of GEMMs differ. If the times of steps are correlated, there is no
/// interval; then all steps must be above its limit, and their median above a higher one.
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
/// aligned clock. Barriers, and exchanges with several partners, are left out.
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

// The following fit scaling laws to the points of a curve.

/// A point for the fit of scaling laws, relative to the baseline: `p` is ranks / baseline's ranks,
/// `speedup` is throughput / baseline's throughput. Every speed-up contains the error of the
/// measured baseline, for which fits have a free factor; the baseline itself is one of the points,
/// and points with fewer ranks are left out. Fits assume the same relative error of all points.
struct ScalingPoint {
  double p = 1;
  double speedup = 1;
  std::optional<double> lower{}, upper{};  ///< 95% interval of the speed-up
};

/// Returns Karp and Flatt's experimentally determined serial fraction (CACM 33(5), 1990):
/// (1/speedup - 1/p) / (1 - 1/p), which grows with p if the parallel overhead does. Absent unless p
/// > 1 and speedup > 0.
[[nodiscard]] std::optional<statistics::Located> karp_flatt(const ScalingPoint& point);

/// Fits the serial fraction f of Amdahl's law, speedup = p / (1 + f (p - 1)), by least squares.
/// Absent with fewer than three points beyond the baseline, whose interval would not be reliable,
/// if the points do not determine f, if f is above 1, or if its interval is at least 1 wide.
[[nodiscard]] std::optional<statistics::Located> amdahl(std::span<const ScalingPoint> points);

/// Fits the serial fraction f of Gustafson's law for weak scaling, speedup = p - f (p - 1), by
/// least squares. Absent in the same cases as amdahl().
[[nodiscard]] std::optional<statistics::Located> gustafson(std::span<const ScalingPoint> points);

/// Gunther's universal scalability law: speedup = p / (1 + a (p - 1) + b p (p - 1)).
struct Usl {
  statistics::Located contention;  ///< the coefficient a
  statistics::Located coherency;   ///< the coefficient b
  /// The p of the largest speed-up, sqrt((1 - a) / b). Absent if b may be 0, if a is 1 or more, or
  /// if the whole interval of a lies below 0.
  std::optional<double> peak{};
};
/// Fits the universal scalability law by least squares. Absent with fewer than five points with
/// more ranks than the baseline, or if the points do not determine the coefficients.
[[nodiscard]] std::optional<Usl> usl(std::span<const ScalingPoint> points);

/// The laws fitted to a curve; absent where the functions above return nothing.
struct Laws {
  std::optional<statistics::Located> amdahl;     ///< serial fraction, of strong scaling
  std::optional<statistics::Located> gustafson;  ///< serial fraction, of weak scaling
  std::optional<Usl> usl;
};

}  // namespace isoscale::analysis::efficiency
