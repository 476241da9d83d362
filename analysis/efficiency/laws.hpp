// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>

#include "analysis/statistics/robust.hpp"

/// Laws of scaling, fitted to a curve. All counts are relative to the baseline: `p` = ranks over
/// its ranks, `speedup` = throughput over its throughput. The baseline was measured too: its error
/// is in every speed-up, so the fits of several points have a free factor for it, and take the
/// baseline itself (p = 1, speedup = 1) as one of the points. Points below the baseline are left
/// out. Intervals take relative errors as alike.
namespace isoscale::analysis {

struct ScalingPoint {
  double p = 1;
  double speedup = 1;
  std::optional<double> lower{}, upper{};  ///< of the speed-up, 95%
};

/// Karp and Flatt's experimentally determined serial fraction (CACM 33(5), 1990):
/// (1/speedup - 1/p) / (1 - 1/p). Grows with p where overheads do. Absent for p <= 1.
[[nodiscard]] std::optional<Located> karp_flatt(const ScalingPoint& point);

/// The serial fraction f of Amdahl's law, speedup = p / (1 + f (p - 1)), by least squares. Absent
/// below three points beyond the baseline: there would be no interval to trust.
[[nodiscard]] std::optional<Located> amdahl(std::span<const ScalingPoint> points);

/// The serial fraction f of Gustafson's law for weak scaling, speedup = p - f (p - 1); likewise.
[[nodiscard]] std::optional<Located> gustafson(std::span<const ScalingPoint> points);

/// Gunther's universal scalability law: speedup = p / (1 + a (p - 1) + b p (p - 1)).
struct Usl {
  Located contention;            ///< a
  Located coherency;             ///< b
  std::optional<double> peak{};  ///< p of the largest speed-up, sqrt((1 - a) / b); absent: none
};
/// By least squares; likewise, but below five points beyond the baseline.
[[nodiscard]] std::optional<Usl> usl(std::span<const ScalingPoint> points);

/// Laws that a curve follows; absent where there are too few points for an interval.
struct Laws {
  std::optional<Located> amdahl;     ///< serial fraction, of strong scaling
  std::optional<Located> gustafson;  ///< serial fraction, of weak scaling
  std::optional<Usl> usl;
};

}  // namespace isoscale::analysis
