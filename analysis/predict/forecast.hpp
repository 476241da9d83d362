// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/efficiency/pop_factors_and_losses.hpp"
#include "analysis/predict/prediction.hpp"
#include "analysis/predict/question.hpp"
#include "analysis/predict/run_machine.hpp"
#include "results/records/run_data.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::analysis::predict {

/// Returns the prediction for a question. If there is no result for some rank count, the prediction
/// says why. Throws base::UsageError if no rank count has a result, if the baseline is neither
/// measured nor predicted, and if a what-if changes a part that the machine has no values for.
[[nodiscard]] Prediction predict(const Question& question);

/// Returns sentences on the most expensive cause of a curve and the rank counts where it changes.
[[nodiscard]] std::vector<std::string> limit_sentences(const ForecastCurve& curve);

/// Forecasts beyond this many times the largest measured rank count are marked as extrapolated.
inline constexpr int most_trusted_growth = 32;
/// The relative standard deviation of a step time that is predicted from a data sheet alone. It is
/// the error of such predictions against published step times (docs/predicting.md lists them).
inline constexpr double sheet_error = 0.05;
/// The relative standard deviation of a step time where no measured step supports what is assumed
/// of the training software. Intervals of this width hold nine tenths of the published steps of
/// software whose own steps were left out of the fit (docs/predicting.md).
inline constexpr double unknown_software_error = 0.25;

/// Returns `value` with its 90% interval: interval_90 standard deviations in either direction on a
/// logarithmic scale.
[[nodiscard]] Expected expected(double value, const Uncertainty& uncertainty);

/// Returns the number of nodes for this many ranks, with at most `node_ranks` ranks on each.
[[nodiscard]] int nodes_of(int ranks, int node_ranks);
/// Returns the nodes of a request's ranks. Nodes are filled one after the other, in the order in
/// which the workload places its ranks.
[[nodiscard]] simulate::Layout layout_of(const workloads::Request& request, int node_ranks);

/// Returns the forecast of a request on `machine`, without the values that need a baseline:
/// speed-up, efficiency, waterfall (time lost to each cause) and limit (the most expensive cause).
[[nodiscard]] Forecast forecast_of(const Question& question, const simulate::Machine& machine,
                                   workloads::Request request, int node_ranks);

/// Returns the predicted seconds of a step on a machine that is known by its data sheet, with
/// `node_ranks` ranks on each node. Throws base::UsageError like estimate_step().
[[nodiscard]] double sheet_step_time(const workloads::Workload& workload,
                                     const workloads::Request& request, simulate::Machine sheet,
                                     int node_ranks);

/// The baseline of a curve of forecasts.
struct ForecastBaseline {
  int ranks = 1;
  double throughput = 0;  ///< work per second
  efficiency::StepLoss loss{};
  bool measured = false;  ///< true: a measured point; false: a forecast of the curve
};

/// Returns the step time and the losses of a forecast as input of efficiency::waterfall(); absent
/// if the forecast has no costs by cause.
[[nodiscard]] std::optional<efficiency::StepLoss> step_loss(const Forecast& forecast);

/// Fills in the forecast's speed-up, efficiency, waterfall and limit. If the baseline is this
/// forecast itself, the efficiency is 1 without an interval, and there are no waterfall and limit.
void set_against(const ForecastBaseline& baseline, Forecast& forecast);

/// Returns the rate that the MFU of steps in this precision is relative to, the first of these that
/// is known: the ceiling that reports take (calibration::ceiling_of), the fastest multiplication of
/// the run's steps, the data sheet's peak. Absent if none is known.
[[nodiscard]] std::optional<MfuCeiling> mfu_ceiling(const simulate::Machine& machine,
                                                    program::Precision precision);

// The functions below (next_measurement.cpp) write commands and find the next measurement.

/// Returns the command that measures `request`.
[[nodiscard]] std::string command_of(const Question& question, const workloads::Request& request);

/// Returns a sentence that asks the user to write a model file and lists its keys, because the
/// commands for the question's run would fail without it. Returns "" if the file is not needed: for
/// a data sheet, a workload without a model, a built-in model, a model that --model names, and a
/// run whose command line names the file.
[[nodiscard]] std::string model_to_write(const Question& question);

/// Returns the standard deviation of all sources of `uncertainty` together, relative to the value.
[[nodiscard]] double total(const Uncertainty& uncertainty);
/// Returns the width of an efficiency's 90% interval, which is symmetric on a logarithmic scale.
[[nodiscard]] double interval_width(double efficiency, const Uncertainty& uncertainty);

/// Returns possible next measurements, each with the width that the interval of the efficiency of
/// `forecast` would then have, narrowest first. Each command measures all that a prediction needs:
///   the curve and collectives, also on twice as many ranks: one more point that tests the
///     prediction, a shorter extrapolation, and the growth of latency with the group; left out if
///     the forecast has fewer ranks, or if the run already measured there
///   the same points for four times as long, which halves the error of their medians
///   another launch, so that the deviation between launches is known; the mean of both is then used
/// `points` are the points to which `fit` was fitted.
[[nodiscard]] std::vector<NextMeasurement> next_measurements(
    const results::RunData& run, const std::vector<const results::PointData*>& points,
    const ModelFit& fit, const simulate::Machine& machine, const Forecast& forecast);

}  // namespace isoscale::analysis::predict
