// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <vector>

#include "analysis/predict/prediction.hpp"
#include "results/run_data.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"

namespace isoscale::analysis {

/// The machine that a run measured: rates by shape and times by size from its calibration, ops as
/// its traced steps took them, the gap between ops, what ops take more beside the other kind, and
/// how all that varies. Throws base::UsageError for a run without calibration; says how to measure
/// one.
[[nodiscard]] simulate::Machine run_machine(const results::RunData& run);
/// Likewise of the first of several launches, at least one; how far apart launches lie is taken
/// from all, where otherwise `assumed_launch_deviation` stands for it. Not owned.
[[nodiscard]] simulate::Machine run_machine(std::span<const results::RunData* const> runs);

/// The fit of the model where the truth is known.
struct ModelFit {
  double correction = 1;  ///< measured over simulated step time, of the curve's larger points
  Uncertainty known{};    ///< at the largest measured point
  int most_ranks = 1, most_nodes = 1;
  std::vector<MeasuredPoint> points{};
  std::string workload{};  ///< of the points
  /// How much the logarithm of measured over simulated changes with each doubling of the ranks, as
  /// far as it does so for certain: it may go on.
  double drift = 0;
  /// The points that `known.fit` rests on: those that were predicted from smaller ones.
  int predicted = 0;
  double median_error = 0;  ///< relative standard error of the points' median steps
};
/// `points` are ok points of one curve of the run, ascending in ranks; those without steps that
/// count are left out. The correction is the geometric mean of measured over simulated, each
/// doubling down from the largest counting a quarter, and points whose own median is uncertain
/// less. `known.fit` is how far each point is off when it is predicted from the smaller ones,
/// together with what is expected before any is known (4%, as sure as two points), by Student's
/// distribution.
[[nodiscard]] ModelFit fit_model(const results::RunData& run,
                                 const std::vector<const results::PointData*>& points,
                                 const simulate::Machine& machine);
/// The model's part of the uncertainty, divided; relative.
struct FitParts {
  double steps = 0;  ///< doublings beyond the largest measured point
  double drift = 0, law = 0;
};
[[nodiscard]] FitParts fit_parts(const ModelFit& fit, const simulate::Machine& machine,
                                 const Forecast& forecast);
/// The uncertainty at so many ranks and nodes: the model's part grows with the distance from what
/// was measured: each doubling of the ranks adds as much variance as the first, the drift goes on,
/// and laws of latency that fit equally well come apart - half of by how much the step under the
/// one is longer than under the other.
[[nodiscard]] Uncertainty uncertainty_at(const ModelFit& fit, const simulate::Machine& machine,
                                         const Forecast& forecast);

/// The request that a point was planned from, but for the speeds that a workload deals out work by.
/// Throws base::UsageError where the point does not say enough.
[[nodiscard]] workloads::Request request_of(const results::PointData& point);
/// On which nodes the ranks of a point were; all on node 0 where that is not known.
[[nodiscard]] simulate::Layout layout_of(const results::RunData& run,
                                         const results::PointData& point);

}  // namespace isoscale::analysis
