// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "results/records/calibration_data.hpp"
#include "results/records/run_data.hpp"

/// Fits curves of time against message size, and rates of matrix multiplications by their shape, to
/// the rows of a run.
namespace isoscale::calibration {

/// One measured point of a curve of time against size. Curves are used as measured, without a
/// formula: a latency and one bandwidth are off published curves by up to 43% where protocols
/// change.
struct SizeTime {
  double bytes = 0, time = 0;  ///< seconds of one call
};

/// Fits a curve to samples, which may hold several of one size and in any order; those without a
/// finite time above 0 are left out. Everything but the curve's names is set.
///   curve      medians per size, made monotone in log time. Between sizes it is straight in log
///              time over log size; or in time over size, if that at least halves the error, as
///              where sizes are far apart and latency and bandwidth alone make the curve
///   latency    from the small sizes, up to 1.5 times the time of the smallest: the centre
///              (Hodges-Lehmann) of their times less the part that grows with size (Theil-Sen)
///   bandwidth  from the sizes within a factor of 64 of the largest that take at least 4 times the
///              latency: the centre of size / (time - latency). If the intercept of a line through
///              them is off the latency by more than 5% of the smallest of their times, it replaces
///              the latency
///   error      promised_error of the interior sizes, each predicted by the curve without it
[[nodiscard]] results::CalibrationCurve fit_curve(std::vector<SizeTime> samples);

/// Returns the seconds that the curve gives for `bytes`. Above its sizes the curve continues at its
/// bandwidth, below them towards its latency. Absent for a curve without sizes, and above the
/// largest size if there is no bandwidth.
[[nodiscard]] std::optional<double> predict(const results::CalibrationCurve& curve, double bytes);

/// Returns how time grows with the number of ranks in a group: one entry for each set of curves
/// that differ in nothing else (except the number of nodes) and have several rank counts, in the
/// order of their first curves. Latency is fitted against log2 n and against n, by least squares of
/// relative errors; from three counts on, the law with the smaller error is named. With two counts
/// both fit exactly: the law is "" and base and slope are those of log2 n.
[[nodiscard]] std::vector<results::CalibrationGrowth> growth_of(
    std::span<const results::CalibrationCurve> curves);

/// Returns the seconds of one call in each play: the play's time on the slowest rank, divided by
/// its number of calls. Plays that lack the time of a rank are left out.
[[nodiscard]] std::vector<double> call_times(const results::RowData& row);
/// True for the name of a collective, "barrier" and "sendrecv" included.
[[nodiscard]] bool is_collective(std::string_view op);

/// Fits curves and rates to the rows of a run. Used are rows that are ok and not known to be wrong;
/// those of points whose ranks share cores or GPUs only where there are no others. Of collectives,
/// only sums (or calls without a reduction) with the library's own choice of algorithm and with
/// unregistered buffers are used. If both were measured, all_reduce in place is preferred, the
/// others out of place, and all groups at once over one group alone. Pairs of ranks give latency
/// and bandwidth, as the op "p2p" with 2 members, by the median over a class of links.
[[nodiscard]] results::CalibrationData calibrate(const results::RunData& run);

/// Returns the calibration that is stored with a run, or fits one if there is none. If the run has
/// GEMM rows that can be used, the ceilings are computed again from these, since the stored ones
/// may follow an older rule.
[[nodiscard]] results::CalibrationData calibration_of(const results::RunData& run);

/// Counts the nodes that these ranks of a point are on; 0 = not known.
[[nodiscard]] int nodes_of(const results::RunData& run, const results::PointData& point,
                           const std::vector<int>& ranks);

/// Sets `held_out` of each shape: the relative error of its rate as predicted from the other
/// shapes.
void add_held_out(std::vector<results::GemmRate>& gemms);

/// Returns the ceiling of each element type: the best of `rows`, each the median of one measured
/// row, warm or cold. Rows of labelled points count only where there are no others. The error comes
/// from `held_out` of the shapes `gemms`.
[[nodiscard]] std::vector<results::GemmCeiling> ceilings_of(
    std::span<const results::GemmRate> rows, std::span<const results::GemmRate> gemms);

/// Returns the ceiling of an element type, not owned; null if none was measured.
[[nodiscard]] const results::GemmCeiling* ceiling_of(const results::CalibrationData& calibration,
                                                     std::string_view dtype);

}  // namespace isoscale::calibration
