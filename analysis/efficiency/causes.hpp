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

/// Finds the causes why points of a curve are not faster, and fits laws of scaling to the curve.
namespace isoscale::analysis {

/// A point that laws of scaling are fitted to. All values are relative to the baseline: `p` = ranks
/// over its ranks, `speedup` = throughput over its throughput. The error of the measured baseline
/// is in every speed-up, so fits over several points have a free factor for it, and include the
/// baseline itself (p = 1, speedup = 1) as a point. Points below the baseline are left out. The
/// intervals assume equal relative errors.
struct ScalingPoint {
  double p = 1;
  double speedup = 1;
  std::optional<double> lower{}, upper{};  ///< 95% interval of the speed-up
};

/// Returns Karp and Flatt's experimentally determined serial fraction (CACM 33(5), 1990):
/// (1/speedup - 1/p) / (1 - 1/p). It grows with p where overheads do. Absent for p <= 1.
[[nodiscard]] std::optional<statistics::Located> karp_flatt(const ScalingPoint& point);

/// Fits the serial fraction f of Amdahl's law, speedup = p / (1 + f (p - 1)), by least squares.
/// Absent below three points beyond the baseline, since the interval could not be trusted.
[[nodiscard]] std::optional<statistics::Located> amdahl(std::span<const ScalingPoint> points);

/// Fits the serial fraction f of Gustafson's law for weak scaling, speedup = p - f (p - 1), by
/// least squares. Absent below three points beyond the baseline.
[[nodiscard]] std::optional<statistics::Located> gustafson(std::span<const ScalingPoint> points);

/// Gunther's universal scalability law: speedup = p / (1 + a (p - 1) + b p (p - 1)).
struct Usl {
  statistics::Located contention;  ///< the coefficient a
  statistics::Located coherency;   ///< the coefficient b
  std::optional<double> peak{};    ///< p of the largest speed-up, sqrt((1 - a) / b); absent: none
};
/// Fits the universal scalability law by least squares. Absent below five points beyond the
/// baseline.
[[nodiscard]] std::optional<Usl> usl(std::span<const ScalingPoint> points);

/// The laws fitted to a curve; absent where there are too few points for an interval.
struct Laws {
  std::optional<statistics::Located> amdahl;     ///< serial fraction, of strong scaling
  std::optional<statistics::Located> gustafson;  ///< serial fraction, of weak scaling
  std::optional<Usl> usl;
};

/// Something that is wrong with a rank, a link or a point, and its likely cause.
struct NamedCause {
  std::string kind;        ///< "slow rank", "slow link", "imbalance", "noise", "waiting"
  std::vector<int> ranks;  ///< ranks of the point; empty = no rank in particular
  double size = 0;         ///< factor for slow ranks and links, else share of the step
  std::string text;        ///< one sentence, with hosts and devices
};

/// Returns the named causes of a point, the most severe kinds first: ranks that are slow in their
/// own GEMMs, slow links, ranks that others always wait for (imbalance), and waiting for changing
/// ranks (noise). Waiting counts from 1% of the step.
[[nodiscard]] std::vector<NamedCause> named_causes(const results::RunData& run,
                                                   const results::PointData& point,
                                                   const TracedSteps& traced,
                                                   const BreakdownResult& breakdown);

/// The causes why a point is not faster.
struct Causes {
  std::optional<Pop> pop{};              ///< with scalability if the curve has a baseline
  std::optional<StepCosts> costs{};      ///< absent without traces
  std::optional<Waterfall> waterfall{};  ///< absent at the baseline, and without one
  std::optional<statistics::Located> serial_fraction{};  ///< Karp and Flatt's; of strong scaling
  std::vector<NamedCause> named{};
};

}  // namespace isoscale::analysis
