// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "results/calibration_data.hpp"

/// Time against size, as measured: no formula is forced on it. One latency and one bandwidth miss
/// published curves by up to 43% where protocols change.
namespace isoscale::analysis {

struct SizeTime {
  double bytes = 0, time = 0;  ///< seconds of one call
};

/// Fits samples, several of a size or in any order; those without a finite time above 0 are left
/// out. The result has everything but its names.
///   curve      medians per size, made monotone in log time. In between it is straight in log time
///              over log size; in time over size where that at least halves the error, as where
///              latency and bandwidth alone make the curve and sizes are far apart
///   latency    of the leading sizes within 1.5 of the smallest's time: what is left without their
///              own slope (Theil-Sen), in the centre (Hodges-Lehmann)
///   bandwidth  of the sizes within 64 of the largest and of at least 4 times the latency: size /
///              (time - latency) in the centre; their own intercept stands for the latency where
///              it is off by more than 5% of the smallest of their times
///   error      promised_error of the interior sizes, each predicted without it
[[nodiscard]] results::CalibrationCurve fit_curve(std::vector<SizeTime> samples);

struct Prediction {
  double time = 0;                         ///< seconds
  std::optional<double> lower{}, upper{};  ///< the promised interval
};
/// Beyond its sizes a curve goes on at its bandwidth, below them towards its latency; no interval
/// is promised there. Absent for a curve without sizes, and beyond the largest without a bandwidth.
[[nodiscard]] std::optional<Prediction> predict(const results::CalibrationCurve& curve,
                                                double bytes);

/// Growth with the ranks of a group, of curves that differ in nothing else (nodes apart): one entry
/// for each kind of which several counts were measured, in the order of their first curves.
/// Latency is fitted by least squares of relative errors against log2 n and against n; from three
/// counts on the law with the smaller error is named. With two, both fit exactly: the law is "" and
/// base and slope are those of log2 n.
[[nodiscard]] std::vector<results::CalibrationGrowth> growth_of(
    std::span<const results::CalibrationCurve> curves);

}  // namespace isoscale::analysis
