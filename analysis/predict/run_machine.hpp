// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

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

/// The fit of the model to the measured points.
struct ModelFit {
  double correction = 1;  ///< measured over simulated step time, from the curve's larger points
  Uncertainty known{};    ///< uncertainty at the largest measured point
  int most_ranks = 1, most_nodes = 1;
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
