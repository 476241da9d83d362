// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "analysis/predict/prediction.hpp"
#include "results/records/run_data.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"

namespace isoscale::analysis::predict {

/// Returns the machine that a run measured. Its calibration gives GEMM rates by shape and
/// communication times by size. Its traced steps give the times of ops, the gap between ops, and
/// the variation of times. The slowdown of compute and communication by each other is from the
/// workload `overlap` if the run has it, else from the traced steps. Throws base::UsageError, whose
/// message says how to calibrate, if the run has no calibration, or none of communication.
[[nodiscard]] simulate::Machine run_machine(const results::RunData& run);

// The declarations below are parts of run_machine(): the times of ops and collectives in steps
// (traced_ops.cpp), and the variation of steps and launches (run_noise.cpp).

/// The times of single ops, from the traced steps of a run's points.
struct TracedOps {
  std::vector<simulate::TimedGemm> gemms{};
  std::vector<simulate::TimedLocal> locals{};
  /// The seconds by which an op begins later than it could: later than the end of the previous op
  /// on its stream and of all ops that it waits for, or than the end of the previous op of any
  /// stream if all streams ran as one. It is the mean over the ops of a step, then the median over
  /// steps and ranks. Absent if there are no traces.
  std::optional<double> gap{};
  /// The factor, from 1 to 10, by which communication of the same rank at the same time slows down
  /// other ops; 1 if no op overlapped with communication.
  double compute_slowdown = 1;
  double op_noise = 0;  ///< relative standard deviation of the time of one op from step to step
};

/// Returns the op times of a run, by shape. The time of a shape is the mean over those ops of a
/// step that ran while their rank did not communicate, then the median over ranks and steps. If
/// there are no such ops, it is the time in a step that was run without communication (SoloTimes),
/// or else the time during communication divided by the slowdown of other ops.
/// A point is used only if it has steps and traces. Its GEMMs are used only if its programs can be
/// built again, because run files do not contain the shapes of GEMMs; other ops are told apart by
/// kind and bytes. For each shape, the points with the most ranks that have it are used, because
/// ranks affect each other's caches and memory. Points whose ranks share cores or a GPU or have
/// injected faults are used only if there are no others.
[[nodiscard]] TracedOps traced_ops(const results::RunData& run);

/// Returns the ok points of a run that have step times after warm-up. Points whose ranks share
/// cores or a GPU or have injected faults are returned only if there are no others.
[[nodiscard]] std::vector<const results::PointData*> stepped_points(const results::RunData& run);

/// Multiplies the calibrated times of each kind of collective in `measured` by a factor from 0.1 to
/// 10: how much longer its calls take in the traced steps of `points` while they hardly overlap
/// with the rank's own compute. Kinds without such calls stay as they are. The times differ because
/// a calibration repeats calls back to back on their own buffers, while in a step the data has just
/// been computed, and compute or idle time lies between calls. Returns the additional factor, from
/// 1 to 10, for calls that overlap with the rank's own compute.
/// It uses the points that have at least half of the largest rank count and whose waiting times are
/// known. A call lasts from the arrival of its last member to the end of its last member, because
/// the next call waits for this end.
[[nodiscard]] double stretch_as_in_steps(const results::RunData& run,
                                         const std::vector<const results::PointData*>& points,
                                         simulate::Measured& measured);

/// The relative standard deviation of the median step time between launches that is assumed if only
/// one launch was measured. The scatter within one launch says little about it: where both were
/// measured, it was 0.3% within launches and 3.9% between them.
inline constexpr double assumed_launch_deviation = 0.02;

/// Returns the variation of compute times over ranks and steps:
///   standing: each rank's constant factor relative to the median of the ranks with the same
///     program. It is set only if ranks differ by more than chance (analysis of variance over ranks
///     and steps, F above 3), and is reduced towards 1 by the part that chance explains.
///   node: the standard deviation between nodes (a variance component) of the ranks' relative times
///     in a step, from which the mean over all ranks is subtracted.
///   rank: the standard deviation between ranks of a node, without the part that follows from the
///     deviations of single ops.
///   draws: the measured deviations of ranks from the mean of their node, scaled to the standard
///     deviation `rank`; empty if there are too few to show the shape of the distribution.
///   op: `of_op`, the relative standard deviation of one op, which averages out in a step of many
///     ops.
///   launch: assumed_launch_deviation.
/// With fewer than three traced steps or two ranks, only op and launch are set.
[[nodiscard]] simulate::Noise noise_of(const results::PointData& point,
                                       const simulate::Layout& layout, double of_op);

/// Returns the relative standard deviation, from launch to launch, of the median step time, pooled
/// over the points that several runs have in common; `assumed_launch_deviation` if there are none.
[[nodiscard]] double launch_deviation(std::span<const results::RunData> runs);

/// Returns the relative standard deviation of untraced step times, estimated from their median
/// absolute deviation; 0 if there are no such times.
[[nodiscard]] double step_deviation(const results::PointData& point);
/// Returns the seconds of results::step_time(); 0 if there is none.
[[nodiscard]] double median_step(const results::PointData& point);

// The declarations below compare simulated with measured step times
// (correction_and_uncertainty.cpp).

/// The result of comparing simulated with measured points.
struct ModelFit {
  /// Measured over simulated step time; a geometric mean in which points with more ranks have more
  /// weight.
  double correction = 1;
  Uncertainty known{};  ///< uncertainty of a prediction near the largest measured point
  int most_ranks = 1;
  std::vector<MeasuredPoint> points{};
  std::string workload{};  ///< workload of the points
  /// The change of log(measured / simulated) for each doubling of the ranks, reduced towards 0 by
  /// its own error. It may continue beyond the measured points, so it makes intervals there wider.
  double drift = 0;
  /// The number of points that were predicted from the smaller ones to compute `known.fit`.
  int predicted = 0;
  double median_error = 0;  ///< relative standard error of the points' median step times
};
/// Compares the simulated with the measured `points`: ok points of one curve of the run, ascending
/// in ranks. Points without untraced steps after warm-up are left out. The correction is the
/// geometric mean of measured over simulated step time. A point's weight is divided by four for
/// each doubling from its ranks to those of the largest point, and is smaller if its median is
/// uncertain. `known.fit` is the error with which each point is predicted from the smaller ones. It
/// is combined with a prior assumption (an error of 4%, with the weight of two points) by Student's
/// distribution.
[[nodiscard]] ModelFit fit_model(const results::RunData& run,
                                 const std::vector<const results::PointData*>& points,
                                 const simulate::Machine& machine);
/// The parts of Uncertainty::fit for one forecast, as relative standard deviations. They grow with
/// the number of doublings from the largest measured rank count to that of the forecast.
struct FitParts {
  /// ModelFit::known.fit times the root of the number of doublings, which counts as at least 1.
  double steps = 0;
  /// `drift` is ModelFit::drift times the number of doublings. `law` is the part that comes from
  /// not knowing how the time of communication grows with the size of groups, or how messages move.
  double drift = 0, law = 0;
};
[[nodiscard]] FitParts fit_parts(const ModelFit& fit, const simulate::Machine& machine,
                                 const Forecast& forecast);
/// Returns the uncertainty of a forecast: noise and launch from the fit, and as `fit` the root of
/// the sum of the squares of `parts`.
[[nodiscard]] Uncertainty uncertainty_with(const ModelFit& fit, const FitParts& parts);

/// Returns the request from which a point was planned, but without the speeds of ranks by which a
/// workload may divide its work unevenly. Throws base::UsageError if the point lacks information,
/// or if this version does not know its workload or one of its options.
[[nodiscard]] workloads::Request request_of(const results::PointData& point);
/// Returns the node of each rank of a point; node 0 for a rank whose node is unknown.
[[nodiscard]] simulate::Layout layout_of(const results::RunData& run,
                                         const results::PointData& point);

}  // namespace isoscale::analysis::predict
