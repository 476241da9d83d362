// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "results/calibration_data.hpp"
#include "results/run_data.hpp"

/// Fits curves of time against size, and rates of matrix multiplications against their shape, to
/// the rows of a run.
namespace isoscale::calibration {

/// Curves are time against size, as measured: no formula is forced on them. A formula of one
/// latency and one bandwidth is off published curves by up to 43% where protocols change.
struct SizeTime {
  double bytes = 0, time = 0;  ///< seconds of one call
};

/// Fits samples, which may hold several of one size and in any order; those without a finite time
/// above 0 are left out. The result has everything but its names.
///   curve      medians per size, made monotone in log time. Between sizes it is straight in log
///              time over log size; it is straight in time over size where that at least halves
///              the error, as where latency and bandwidth alone make the curve and sizes are far
///              apart
///   latency    from the leading sizes whose time is within 1.5 of the smallest's: the remainder of
///              their times without their own slope (Theil-Sen), in the centre (Hodges-Lehmann)
///   bandwidth  from the sizes within a factor of 64 of the largest that take at least 4 times the
///              latency: size / (time - latency) in the centre; their own intercept replaces the
///              latency where it is off by more than 5% of the smallest of their times
///   error      promised_error of the interior sizes, each predicted without it
[[nodiscard]] results::CalibrationCurve fit_curve(std::vector<SizeTime> samples);

struct TimePrediction {
  double time = 0;                         ///< seconds
  std::optional<double> lower{}, upper{};  ///< the promised interval
};
/// Returns the time that the curve gives for `bytes`. Beyond its sizes the curve continues at its
/// bandwidth, below them towards its latency; no interval is promised there. Absent for a curve
/// without sizes, and beyond the largest size without a bandwidth.
[[nodiscard]] std::optional<TimePrediction> predict(const results::CalibrationCurve& curve,
                                                    double bytes);

/// Returns how time grows with the ranks of a group, for curves that differ in nothing else (except
/// the number of nodes): one entry for each kind that was measured with several counts, in the
/// order of their first curves. Latency is fitted by least squares of relative errors against log2
/// n and against n; from three counts on, the law with the smaller error is named. With two counts
/// both fit exactly: the law is "" and base and slope are those of log2 n.
[[nodiscard]] std::vector<results::CalibrationGrowth> growth_of(
    std::span<const results::CalibrationCurve> curves);

/// Returns the seconds of one call in each play: the slowest rank's time of the play over its
/// calls. Plays that lack the time of a rank are left out.
[[nodiscard]] std::vector<double> call_times(const results::RowData& row);
/// True for the name of a collective, "barrier" and "sendrecv" included.
[[nodiscard]] bool is_collective(std::string_view op);

/// Fits curves and rates to the rows of a run. It uses the rows that are ok and not known to be
/// wrong, and rows of points whose ranks share cores or GPUs only where there are no others.
/// Collectives count if they sum (or reduce nothing), with the library's own choice of algorithm
/// and with buffers that were not registered: all_reduce in place and others out of place if both
/// were measured, and groups that ran all at once if both were. Pairs give latency and bandwidth,
/// as the op "p2p" with 2 members, by the median over a class.
[[nodiscard]] results::CalibrationData calibrate(const results::RunData& run);

/// Returns the calibration that is stored with a run, or fits one if there is none. Its ceilings
/// are those of the run's rows wherever it has any, since files may store ceilings by an older
/// rule.
[[nodiscard]] results::CalibrationData calibration_of(const results::RunData& run);

/// Counts the nodes that these ranks of a point are on; 0 = not known.
[[nodiscard]] int nodes_of(const results::RunData& run, const results::PointData& point,
                           const std::vector<int>& ranks);

/// Sets `held_out` of each shape.
void add_held_out(std::vector<results::GemmRate>& gemms);

/// Returns the ceiling of each element type: the best of `rows`, each of which is the median of one
/// measured row, warm or cold. Rows of labelled points count only where there are no others. The
/// error is that of the shapes `gemms`.
[[nodiscard]] std::vector<results::GemmCeiling> ceilings_of(
    std::span<const results::GemmRate> rows, std::span<const results::GemmRate> gemms);

/// Returns the ceiling of an element type, not owned; null if none was measured.
[[nodiscard]] const results::GemmCeiling* ceiling_of(const results::CalibrationData& calibration,
                                                     std::string_view dtype);

struct RatePrediction {
  double rate = 0;                     ///< FLOP/s
  std::optional<double> lower, upper;  ///< from the ceiling's error
};
/// Predicts the rate of a shape that need not have been measured: the rate of the nearest shape of
/// that element type and of the ceiling's cache state, by distance in (log FLOP, log smallest
/// extent). Absent if no such shape was measured.
[[nodiscard]] std::optional<RatePrediction> predict_rate(
    const results::CalibrationData& calibration, const results::GemmRate& shape);

}  // namespace isoscale::calibration
