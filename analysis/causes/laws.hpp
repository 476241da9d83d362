// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>

#include "analysis/statistics/robust.hpp"

/// Laws of scaling, fitted to a curve. All counts are relative to the baseline: `p` = ranks over
/// its ranks, `speedup` = throughput over its throughput.
namespace isoscale::analysis {

struct ScalingPoint {
  double p = 1;
  double speedup = 1;
  std::optional<double> lower, upper;  ///< of the speed-up, 95%
};

/// Karp and Flatt's experimentally determined serial fraction (CACM 33(5), 1990):
/// (1/speedup - 1/p) / (1 - 1/p). Grows with p where overheads do. Absent for p <= 1.
[[nodiscard]] std::optional<Located> karp_flatt(const ScalingPoint& point);

/// Amdahl: speedup = 1 / (f + (1 - f) / p), by least squares of 1/speedup. Absent below three
/// points beyond the baseline: there would be no interval to trust. `serial` with its 95% interval.
[[nodiscard]] std::optional<Located> amdahl(std::span<const ScalingPoint> points);

/// Gustafson: scaled speedup = p - f (p - 1), for weak scaling; likewise.
[[nodiscard]] std::optional<Located> gustafson(std::span<const ScalingPoint> points);

/// Gunther's universal scalability law: capacity = p / (1 + a (p - 1) + b p (p - 1)).
struct Usl {
  Located contention;          ///< a
  Located coherency;           ///< b
  std::optional<double> peak;  ///< p of the largest capacity, sqrt((1 - a) / b); absent: none
};
/// By least squares of p/speedup, each point weighted by its own relative size. Absent below six
/// points, the baseline included.
[[nodiscard]] std::optional<Usl> usl(std::span<const ScalingPoint> points);

}  // namespace isoscale::analysis
