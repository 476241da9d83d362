// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "analysis/predict/prediction.hpp"
#include "results/records/run_data.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"

namespace isoscale::analysis::predict {

/// Returns the machine that a run measured. Its calibration gives rates by shape and times by size;
/// its traced steps give the times of ops, the gap between ops, the slowdown of compute and
/// communication by each other, and the variation of all these. Throws base::UsageError for a run
/// without calibration, with a message on how to measure one.
[[nodiscard]] simulate::Machine run_machine(const results::RunData& run);

// The following are the parts from which a machine is made: the times of ops and collectives in
// steps (traced_ops.cpp), and the variation of steps and launches (run_noise.cpp).

/// The times of single ops, from the traced steps of a run's points.
struct TracedOps {
  std::vector<simulate::TimedGemm> gemms{};
  std::vector<simulate::TimedLocal> locals{};
  /// The seconds between the time when an op could begin (the previous op on its stream and all ops
  /// that it waits for had ended) and the time when it began: mean over the ops of a step, median
  /// over steps and ranks. Absent without traces.
  std::optional<double> gap{};
  /// The factor by which ops other than communication take longer while their rank communicates; 1
  /// if no such op overlapped with communication.
  double compute_slowdown = 1;
  double op_noise = 0;  ///< relative standard deviation of an op about the mean of its shape
};

/// Returns the op times of a run. Points count only if they have steps and traces and their
/// programs can be built again, since the run file has no shapes. The time of a shape is the mean
/// over those ops of a step that ran without communication, then the median over ranks and steps.
/// If no op ran without communication, it is the time in a step that was run without communication
/// (SoloTimes), or else the time during communication divided by the slowdown of other ops. It
/// comes from the points with most ranks that have the shape, so that it includes the effects of
/// ranks on each other's caches and memory. Points whose ranks share cores or have injected faults
/// count only if there are no others.
[[nodiscard]] TracedOps traced_ops(const results::RunData& run);

/// Returns the ok points of a run with steps that count. Points whose ranks share cores or a GPU or
/// have injected faults are returned only if there are no others.
[[nodiscard]] std::vector<const results::PointData*> stepped_points(const results::RunData& run);

/// The ratio of the time of collectives in steps to their time alone. The two differ since a
/// calibration repeats calls back to back on their own buffers, while in a step the data has just
/// been computed, and compute or idle time lies between calls.
struct CommunicationInSteps {
  /// The factor for each kind, from calls that hardly overlap with the rank's compute. A kind
  /// without such calls is absent.
  std::map<program::OpKind, double> apart{};
  /// The additional factor for calls that overlap with the rank's compute; at least 1.
  double slowdown = 1;
};

/// Compares collectives in the traced steps of `points` with their times alone in `measured`. It
/// uses the points with at least half of the largest rank count and with known waits. A call lasts
/// from its last member's arrival to its last member's end, since the next call waits for this end.
[[nodiscard]] CommunicationInSteps communication_in_steps(
    const results::RunData& run, const std::vector<const results::PointData*>& points,
    const simulate::Measured& measured);

/// Multiplies the measured times of each kind by its factor in `apart`.
void stretch(simulate::Measured& measured, const std::map<program::OpKind, double>& apart);

/// The relative deviation of the median step from one launch to the next that is assumed if only
/// one launch was measured. The interval within one launch cannot replace it (0.3% within launches,
/// 3.9% between them, where both were measured).
inline constexpr double assumed_launch_deviation = 0.02;

/// Returns the variation of compute from rank to rank and from step to step:
///   standing: each rank's constant factor relative to the median of ranks that play the same
///     program, if ranks differ by more than chance (analysis of variance over ranks and steps, F
///     above 3), shrunk towards 1 by the part that is chance
///   node: the standard deviation between nodes (variance component), after each step's mean over
///     all ranks is subtracted
///   rank: the standard deviation between ranks of a node, without the part that the deviations of
///     single ops explain
///   draws: the measured deviations of ranks from their node's mean, scaled to have the standard
///     deviation `rank`; empty if they are too few to show the shape of their distribution
/// `of_op` is the deviation of a single op, which averages out in a step of many ops.
[[nodiscard]] simulate::Noise noise_of(const results::PointData& point,
                                       const simulate::Layout& layout, double of_op);

/// Returns the relative standard deviation over launches of the median step time, pooled over the
/// points that several runs have in common; `assumed_launch_deviation` if they have none in common.
[[nodiscard]] double launch_deviation(std::span<const results::RunData> runs);

/// Returns the relative standard deviation of untraced step times, from their median absolute
/// deviation.
[[nodiscard]] double step_deviation(const results::PointData& point);
/// Returns the median seconds of the untraced steps; 0 without any.
[[nodiscard]] double median_step(const results::PointData& point);

// The following compare the model with the measured points (model_fit.cpp).

/// The fit of the model to the measured points.
struct ModelFit {
  /// Measured / simulated step time; a mean in which points with more ranks have more weight.
  double correction = 1;
  Uncertainty known{};  ///< uncertainty at the largest measured point
  int most_ranks = 1;
  std::vector<MeasuredPoint> points{};
  std::string workload{};  ///< workload of the points
  /// The change of log(measured / simulated) per doubling of the ranks, shrunk towards 0 by its own
  /// error. It may continue beyond the measured points, so it widens the interval there.
  double drift = 0;
  /// The number of points that were predicted from smaller ones to compute `known.fit`.
  int predicted = 0;
  double median_error = 0;  ///< relative standard error of the points' median steps
};
/// Fits the model to `points`: ok points of one curve of the run, ascending in ranks. Points
/// without steps that count are left out. The correction is the geometric mean of measured over
/// simulated step time. Each doubling down from the largest point divides a point's weight by four,
/// and points with an uncertain median have less weight. `known.fit` is the error of each point
/// when it is predicted from the smaller ones, combined with a prior (4%, with the weight of two
/// points), by Student's distribution.
[[nodiscard]] ModelFit fit_model(const results::RunData& run,
                                 const std::vector<const results::PointData*>& points,
                                 const simulate::Machine& machine);
/// The model's part of the uncertainty at a forecast's ranks and nodes, split by source, as
/// relative standard deviations. It grows with the distance from the measured points: each doubling
/// of the ranks adds the same variance, the drift continues, and latency laws that fit equally well
/// diverge (half of the difference between the logarithms of the step times under both laws).
struct FitParts {
  double steps = 0;  ///< errors that each doubling beyond the largest measured point adds
  double drift = 0, law = 0;
};
[[nodiscard]] FitParts fit_parts(const ModelFit& fit, const simulate::Machine& machine,
                                 const Forecast& forecast);
/// Returns the uncertainty of a forecast: the fit's known noise and launch parts, and as the
/// model's part the root of the sum of squares of `parts`.
[[nodiscard]] Uncertainty uncertainty_with(const ModelFit& fit, const FitParts& parts);

/// Returns the request from which a point was planned, except for the rank speeds by which a
/// workload may divide its work unevenly. Throws base::UsageError if the point lacks information.
[[nodiscard]] workloads::Request request_of(const results::PointData& point);
/// Returns the nodes of a point's ranks; all ranks are on node 0 if the nodes are unknown.
[[nodiscard]] simulate::Layout layout_of(const results::RunData& run,
                                         const results::PointData& point);

}  // namespace isoscale::analysis::predict
