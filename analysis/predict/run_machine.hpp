// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <vector>

#include "analysis/predict/prediction.hpp"
#include "results/records/run_data.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"

namespace isoscale::analysis::predict {

/// Returns the machine that a run measured: rates by shape and times by size from its calibration,
/// the times of ops in its traced steps, the gap between ops, the slowdown of compute and
/// communication by each other, and the variation of all these. Throws base::UsageError for a run
/// without calibration, which says how to measure one.
[[nodiscard]] simulate::Machine run_machine(const results::RunData& run);
/// Returns the machine of the first of several launches (at least one). The deviation between
/// launches comes from all of them; for a single launch it is `assumed_launch_deviation`.
[[nodiscard]] simulate::Machine run_machine(std::span<const results::RunData* const> runs);

/// The fit of the model to the measured points.
struct ModelFit {
  double correction = 1;  ///< measured over simulated step time, from the curve's larger points
  Uncertainty known{};    ///< uncertainty at the largest measured point
  int most_ranks = 1, most_nodes = 1;
  std::vector<MeasuredPoint> points{};
  std::string workload{};  ///< of the points
  /// The change of log(measured / simulated) per doubling of the ranks, shrunk towards 0 by its own
  /// error. Beyond the measured points it may continue, which widens the interval.
  double drift = 0;
  /// The number of points that `known.fit` is based on: those predicted from smaller ones.
  int predicted = 0;
  double median_error = 0;  ///< relative standard error of the points' median steps
};
/// Fits the model to `points`: ok points of one curve of the run, ascending in ranks; those without
/// steps that count are left out. The correction is the geometric mean of measured over simulated.
/// Each doubling down from the largest point divides the weight by four, and points with an
/// uncertain median have less weight. `known.fit` is the error of each point when it is predicted
/// from the smaller ones, combined with a prior (4%, with the weight of two points), by Student's
/// distribution.
[[nodiscard]] ModelFit fit_model(const results::RunData& run,
                                 const std::vector<const results::PointData*>& points,
                                 const simulate::Machine& machine);
/// The model's part of the uncertainty by source, as relative standard deviations.
struct FitParts {
  double steps = 0;  ///< errors that each doubling beyond the largest measured point adds
  double drift = 0, law = 0;
};
[[nodiscard]] FitParts fit_parts(const ModelFit& fit, const simulate::Machine& machine,
                                 const Forecast& forecast);
/// Returns the uncertainty at a forecast's ranks and nodes. The model's part grows with the
/// distance from the measured points: each doubling of the ranks adds the same variance as the
/// first, the drift continues, and laws of latency that fit equally well diverge (half of the
/// difference between the steps under either law, as a logarithm).
[[nodiscard]] Uncertainty uncertainty_at(const ModelFit& fit, const simulate::Machine& machine,
                                         const Forecast& forecast);

/// Returns the request that a point was planned from, without the speeds by which a workload
/// divides its work unevenly. Throws base::UsageError where the point has too little information.
[[nodiscard]] workloads::Request request_of(const results::PointData& point);
/// Returns the nodes of a point's ranks; all on node 0 where they are not known.
[[nodiscard]] simulate::Layout layout_of(const results::RunData& run,
                                         const results::PointData& point);

}  // namespace isoscale::analysis::predict
