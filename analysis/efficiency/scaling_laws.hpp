// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>

#include "statistics/quantiles_and_fits.hpp"

/// Fits scaling laws to the points of a curve.
namespace isoscale::analysis::efficiency {

/// A point for the fit of scaling laws, relative to the baseline: `p` is ranks / baseline's ranks,
/// `speedup` is throughput / baseline's throughput. Fits include the baseline itself and leave out
/// points with fewer ranks. They assume the same relative error of all points, and have a free
/// factor for the baseline's error, which every speed-up contains.
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
