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
/// the rows of a run, which are the results of its micro-benchmarks.
namespace isoscale::calibration {

/// Fits a curve of time against message size to samples in any order, several of which may have the
/// same size; only their sizes and times are read. Samples without a finite time above 0 are left
/// out. The curve interpolates between the measured sizes instead of following a formula, since a
/// formula of one latency and one bandwidth differs from published curves by up to 43% where the
/// library changes its protocol. The fields that identify the curve, and its labels, are not set.
/// The function sets these fields:
///   samples    the median time of each size, and as `fitted` the same times made non-decreasing
///   form       how the curve runs between sizes: usually log time is linear in log size. Time is
///              linear in size if that at least halves the error, which happens where sizes are far
///              apart and time is a latency plus bytes / bandwidth
///   latency    the centre (Hodges-Lehmann) of the small sizes' times, after the part of each time
///              that grows with size (Theil-Sen slope) is subtracted. Small sizes take up to 1.5
///              times as long as the smallest size. A small size is left out if over 20% of its
///              time grows with size, unless it is the smallest. If the small sizes span less than
///              a factor of 4, only the smallest one counts, and latency is absent if over 10% of
///              its time grows with size
///   bandwidth  the centre of size / (time - latency) of the large sizes, which are within a factor
///              of 64 of the largest and take at least 4 times the latency. The intercept of a line
///              through the large sizes' times is used in place of the latency if the latency is
///              unknown or differs from it by more than 5% of the time of the smallest large size.
///              Bandwidth is absent if the time of large sizes grows much more slowly than their
///              size, if there are none, or if there is only one and the latency is unknown
///   error      the relative error that 95% of predictions should not exceed
///              (statistics::promised_error), judged by all sizes but the smallest and the largest,
///              each predicted by a curve that is fitted without it; absent below 5 sizes
[[nodiscard]] results::CalibrationCurve fit_curve(const std::vector<results::CurveSample>& samples);

/// Returns the seconds that the curve gives for `bytes`. Above its largest size the time grows by
/// 1/bandwidth for each byte. Below its smallest size it falls by as much for each byte, down to
/// the latency or, if that is unknown, down to a time in proportion to the size. If the bandwidth
/// is unknown, the time below the smallest size stays the same, and above the largest size it is
/// absent. It is also absent for a curve without samples.
[[nodiscard]] std::optional<double> predict(const results::CalibrationCurve& curve, double bytes);

/// Returns the growth of latency with the number n of ranks in a group. There is one entry for each
/// set of curves that differ only in the numbers of ranks and nodes and that have at least two rank
/// counts, in the order of the first curve of each set. Two lines are fitted by least squares of
/// relative errors, latency against log2 n and latency against n. If at least three latencies are
/// known, `law` names the line with the smaller error. With two, both lines fit exactly: `law` is
/// then "", and `base` and `slope` are of the line against log2 n. With fewer, there is no line.
[[nodiscard]] std::vector<results::CalibrationGrowth> growth_of(
    std::span<const results::CalibrationCurve> curves);

/// Returns the seconds of one call in each play (timed repetition) of a row: the play's time on the
/// slowest rank, divided by its number of calls. Plays that lack the time of a rank are left out.
[[nodiscard]] std::vector<double> call_times(const results::RowData& row);
/// True for the name of a collective, "barrier" and "sendrecv" included.
[[nodiscard]] bool is_collective(std::string_view op);

/// Fits curves and rates to the rows of a run. It uses rows whose status is ok and in which no
/// wrong element was found. Rows of points with labels such as "oversubscribed" (results::unsound)
/// count only where there are no others. Rows of collectives are used only if they sum or have no
/// reduction, let the library choose the algorithm, and do not register buffers. If several ways
/// were measured, all_reduce in place, other collectives out of place, and all groups at once are
/// preferred. The op "p2p" between pairs of ranks has one curve for each class of links, with the
/// median time over all pairs of the class.
[[nodiscard]] results::CalibrationData calibrate(const results::RunData& run);

/// Returns the calibration that is stored with a run, or fits one if there is none. If the run has
/// GEMM rows that can be used, the ceilings are computed again from them, since the stored ceilings
/// may follow an older rule.
[[nodiscard]] results::CalibrationData calibration_of(const results::RunData& run);

/// Returns the number of nodes that these ranks of a point are on; absent if it is not known.
[[nodiscard]] std::optional<int> nodes_of(const results::RunData& run,
                                          const results::PointData& point,
                                          const std::vector<int>& ranks);

/// Sets `held_out` of each shape: the relative error with which other shapes predict its rate.
void add_held_out(std::vector<results::GemmRate>& gemms);

/// Returns the ceiling of each element type: the highest rate among `rows`, which hold the median
/// rate of each measured multiplication, with a warm and with a cold cache. Rows of points with
/// labels such as "oversubscribed" (results::unsound) count only where there are no others. The
/// error of a ceiling is computed from `held_out` of the shapes `gemms`.
[[nodiscard]] std::vector<results::GemmCeiling> ceilings_of(
    std::span<const results::GemmRate> rows, std::span<const results::GemmRate> gemms);

/// Returns a pointer to the ceiling of an element type in `calibration`; null if none was measured.
[[nodiscard]] const results::GemmCeiling* ceiling_of(const results::CalibrationData& calibration,
                                                     std::string_view dtype);

}  // namespace isoscale::calibration
