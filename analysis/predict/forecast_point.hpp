// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "analysis/predict/prediction.hpp"
#include "analysis/predict/question.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"
#include "workloads/workload.hpp"

namespace isoscale::analysis {

/// Beyond so many times the ranks that were measured a prediction is marked.
inline constexpr int most_trusted_growth = 32;
/// Relative standard deviation of a step time that a data sheet gives, where nothing was measured:
/// what predictions from sheets miss published step times by (docs/predicting.md has them).
inline constexpr double sheet_error = 0.05;

/// `value` and its 90% interval: on a logarithmic scale, interval_90 standard deviations either
/// way.
[[nodiscard]] Expected expected(double value, const Uncertainty& uncertainty);

/// Nodes that so many ranks fill.
[[nodiscard]] int nodes_of(int ranks, int node_ranks);
/// The nodes of the ranks of a request, filled one after the other in the order that the workload
/// places its ranks in.
[[nodiscard]] simulate::Layout layout_of(const workloads::Request& request, int node_ranks);

/// Of a request, on `machine`, without what it is against its baseline: speed-up, efficiency,
/// waterfall and limit.
[[nodiscard]] Forecast forecast_of(const Question& question, const simulate::Machine& machine,
                                   workloads::Request request, int node_ranks);

/// Seconds of a step on a machine known by its data sheet, as its forecast has them, with so many
/// ranks on each node. Throws base::UsageError as estimate_step() does.
[[nodiscard]] double sheet_step_time(const workloads::Workload& workload,
                                     const workloads::Request& request, simulate::Machine sheet,
                                     int node_ranks);

}  // namespace isoscale::analysis
