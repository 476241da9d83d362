// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "results/calibration_data.hpp"
#include "results/run_data.hpp"

/// Fits what the rows of a run tell of its parts: curves of time against size, and rates of matrix
/// multiplications against their shape.
namespace isoscale::calibration {

/// Curves are time against size, as measured: no formula is forced on it. One latency and one
/// bandwidth miss published curves by up to 43% where protocols change.
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

struct TimePrediction {
  double time = 0;                         ///< seconds
  std::optional<double> lower{}, upper{};  ///< the promised interval
};
/// Beyond its sizes a curve goes on at its bandwidth, below them towards its latency; no interval
/// is promised there. Absent for a curve without sizes, and beyond the largest without a bandwidth.
[[nodiscard]] std::optional<TimePrediction> predict(const results::CalibrationCurve& curve,
                                                    double bytes);

/// Growth with the ranks of a group, of curves that differ in nothing else (nodes apart): one entry
/// for each kind of which several counts were measured, in the order of their first curves.
/// Latency is fitted by least squares of relative errors against log2 n and against n; from three
/// counts on the law with the smaller error is named. With two, both fit exactly: the law is "" and
/// base and slope are those of log2 n.
[[nodiscard]] std::vector<results::CalibrationGrowth> growth_of(
    std::span<const results::CalibrationCurve> curves);

/// Seconds of one call in each play: the slowest rank's time of the play over its calls. Plays that
/// lack the time of a rank are left out.
[[nodiscard]] std::vector<double> call_times(const results::RowData& row);
/// True for the name of a collective, "barrier" and "sendrecv" included.
[[nodiscard]] bool is_collective(std::string_view op);

/// Fits all that the rows of a run tell of its parts. Counted are rows that are ok and not known to
/// be wrong; of points whose ranks share cores or GPUs only where no other tells; of collectives
/// those that sum (or reduce nothing), with the library's own choice of algorithm and buffers that
/// were not registered, all_reduce in place and others out of place where both are, and where
/// groups ran both alone and all at once the latter; of pairs latency and bandwidth, as the op
/// "p2p" with 2 members, the median over a class.
[[nodiscard]] results::CalibrationData calibrate(const results::RunData& run);

/// The calibration stored with a run, or fitted where there is none. Its ceilings are those of the
/// run's rows wherever it has any, since files may store ceilings by an older rule.
[[nodiscard]] results::CalibrationData calibration_of(const results::RunData& run);

/// Counts the nodes that ranks of a point are on; 0 = not known.
[[nodiscard]] int nodes_of(const results::RunData& run, const results::PointData& point,
                           const std::vector<int>& ranks);

/// Fills `held_out` of each shape.
void add_held_out(std::vector<results::GemmRate>& gemms);

/// The ceiling of each element type: the best of `rows`, each the median of one measured row, warm
/// or cold. Rows of labelled points count only where there are no others. The error is that of the
/// shapes `gemms`.
[[nodiscard]] std::vector<results::GemmCeiling> ceilings_of(
    std::span<const results::GemmRate> rows, std::span<const results::GemmRate> gemms);

/// The ceiling of an element type; null where none was measured. Not owned.
[[nodiscard]] const results::GemmCeiling* ceiling_of(const results::CalibrationData& calibration,
                                                     std::string_view dtype);

struct RatePrediction {
  double rate = 0;                     ///< FLOP/s
  std::optional<double> lower, upper;  ///< by the ceiling's error
};
/// For a shape that need not have been measured: the rate of the nearest one of that element type
/// and of the ceiling's cache state, where distance is that of (log FLOP, log smallest extent).
/// Absent where no such shape was measured.
[[nodiscard]] std::optional<RatePrediction> predict_rate(
    const results::CalibrationData& calibration, const results::GemmRate& shape);

}  // namespace isoscale::calibration
