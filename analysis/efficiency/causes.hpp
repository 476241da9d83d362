// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/breakdown/breakdown.hpp"
#include "analysis/breakdown/traced_steps.hpp"
#include "analysis/efficiency/losses.hpp"
#include "results/run_data.hpp"
#include "statistics/robust.hpp"

/// The causes why points of a curve are not faster, and the laws of scaling that the curve follows.
namespace isoscale::analysis {

/// A point that laws of scaling are fitted to. All counts are relative to the baseline: `p` = ranks
/// over its ranks, `speedup` = throughput over its throughput. The baseline was measured too: its
/// error is in every speed-up, so the fits of several points have a free factor for it, and take
/// the baseline itself (p = 1, speedup = 1) as one of the points. Points below the baseline are
/// left out. Intervals take relative errors as alike.
struct ScalingPoint {
  double p = 1;
  double speedup = 1;
  std::optional<double> lower{}, upper{};  ///< of the speed-up, 95%
};

/// Karp and Flatt's experimentally determined serial fraction (CACM 33(5), 1990):
/// (1/speedup - 1/p) / (1 - 1/p). Grows with p where overheads do. Absent for p <= 1.
[[nodiscard]] std::optional<statistics::Located> karp_flatt(const ScalingPoint& point);

/// The serial fraction f of Amdahl's law, speedup = p / (1 + f (p - 1)), by least squares. Absent
/// below three points beyond the baseline: there would be no interval to trust.
[[nodiscard]] std::optional<statistics::Located> amdahl(std::span<const ScalingPoint> points);

/// The serial fraction f of Gustafson's law for weak scaling, speedup = p - f (p - 1); likewise.
[[nodiscard]] std::optional<statistics::Located> gustafson(std::span<const ScalingPoint> points);

/// Gunther's universal scalability law: speedup = p / (1 + a (p - 1) + b p (p - 1)).
struct Usl {
  statistics::Located contention;  ///< a
  statistics::Located coherency;   ///< b
  std::optional<double> peak{};    ///< p of the largest speed-up, sqrt((1 - a) / b); absent: none
};
/// By least squares; likewise, but below five points beyond the baseline.
[[nodiscard]] std::optional<Usl> usl(std::span<const ScalingPoint> points);

/// Laws that a curve follows; absent where there are too few points for an interval.
struct Laws {
  std::optional<statistics::Located> amdahl;     ///< serial fraction, of strong scaling
  std::optional<statistics::Located> gustafson;  ///< serial fraction, of weak scaling
  std::optional<Usl> usl;
};

/// Something that is wrong with a rank, a link or a point, and its likely cause.
struct NamedCause {
  std::string kind;        ///< "slow rank", "slow link", "imbalance", "noise", "waiting"
  std::vector<int> ranks;  ///< of the point; empty = no one in particular
  double size = 0;         ///< factor of slow ones, else share of the step
  std::string text;        ///< one sentence, with hosts and devices
};

/// The named causes of a point, most severe kinds first: ranks that are slow in their own GEMMs,
/// links, ranks that others always wait for, and waiting that hits now one and now another; waiting
/// counts from 1% of the step.
[[nodiscard]] std::vector<NamedCause> named_causes(const results::RunData& run,
                                                   const results::PointData& point,
                                                   const TracedSteps& traced,
                                                   const BreakdownResult& breakdown);

/// The causes why a point is not faster.
struct Causes {
  std::optional<Pop> pop{};              ///< with scalability where the curve has a baseline
  std::optional<StepCosts> costs{};      ///< absent without traces
  std::optional<Waterfall> waterfall{};  ///< absent at the baseline and without one
  std::optional<statistics::Located> serial_fraction{};  ///< Karp and Flatt's; of strong scaling
  std::vector<NamedCause> named{};
};

}  // namespace isoscale::analysis
