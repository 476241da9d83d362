// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>

#include "statistics/robust.hpp"

/// Fits laws of scaling to the points of a curve.
namespace isoscale::analysis::efficiency {

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

}  // namespace isoscale::analysis::efficiency
