// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/efficiency/losses.hpp"
#include "analysis/predict/prediction.hpp"
#include "analysis/predict/question.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::analysis {

/// Answers everything that was asked. Throws base::UsageError for what is impossible. With a
/// search, rank counts for which it finds nothing are refused one by one, and all of them only
/// together.
[[nodiscard]] Prediction predict(const Question& question);

/// Sentences on where the cause that costs most changes along a curve; on what it is all along
/// where it does not change.
[[nodiscard]] std::vector<std::string> limit_sentences(const ForecastCurve& curve);

// The parts of a prediction.

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

/// The forecast of a request on `machine`, without what it is against its baseline: speed-up,
/// efficiency, waterfall and limit.
[[nodiscard]] Forecast forecast_of(const Question& question, const simulate::Machine& machine,
                                   workloads::Request request, int node_ranks);

/// Seconds of a step on a machine known by its data sheet, as its forecast has them, with so many
/// ranks on each node. Throws base::UsageError as estimate_step() does.
[[nodiscard]] double sheet_step_time(const workloads::Workload& workload,
                                     const workloads::Request& request, simulate::Machine sheet,
                                     int node_ranks);

/// The baseline of a curve of forecasts.
struct ForecastBaseline {
  int ranks = 1;
  double throughput = 0;  ///< work/s
  StepLoss loss{};
  bool measured = false;  ///< else a forecast of the curve
};

/// The losses of a forecast that a waterfall takes; absent without costs.
[[nodiscard]] std::optional<StepLoss> step_loss(const Forecast& forecast);

/// Fills speed-up, efficiency, waterfall and limit. The baseline itself has efficiency 1 and no
/// interval when it is a forecast: nothing of it is uncertain against itself.
void set_against(const ForecastBaseline& baseline, Forecast& forecast);

/// FLOP/s that MFU is a share of: the best that a multiplication with operands of this precision
/// reached where some were measured, else the sheet's peak; absent where neither says.
[[nodiscard]] std::optional<double> peak_rate(const simulate::Machine& machine,
                                              workloads::Precision precision);

}  // namespace isoscale::analysis
