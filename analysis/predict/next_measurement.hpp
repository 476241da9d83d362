// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "analysis/predict/prediction.hpp"
#include "analysis/predict/question.hpp"
#include "analysis/predict/run_machine.hpp"
#include "results/records/run_data.hpp"
#include "simulate/machine.hpp"

namespace isoscale::analysis::predict {

/// Returns the command that measures `request`.
[[nodiscard]] std::string command_of(const Question& question, const workloads::Request& request);

/// Returns a sentence that names the model file, with its keys, that the user must write before the
/// commands for the question's run work; "" if the model is built in or the run was given its file.
[[nodiscard]] std::string model_to_write(const Question& question);

/// Returns the standard deviation of all sources of `uncertainty` together, relative to the value.
[[nodiscard]] double total(const Uncertainty& uncertainty);
/// Returns the width of an efficiency's 90% interval. It is symmetric on a logarithmic scale, since
/// the error is relative.
[[nodiscard]] double interval_width(double efficiency, const Uncertainty& uncertainty);

/// Returns possible next measurements, each with the interval that the efficiency of `forecast`
/// would then have, narrowest first:
///   the curve on twice its ranks: one more point that tests the prediction, and a shorter
///     extrapolation
///   collectives on twice the ranks: the law of their latency is known, or is extrapolated from
///     larger groups
///   the same for four times as long: the medians of the points have half the error
///   another launch: the deviation between launches is known, and the mean of both is used
/// `points` are the points to which `fit` was fitted.
[[nodiscard]] std::vector<NextMeasurement> next_measurements(
    const results::RunData& run, const std::vector<const results::PointData*>& points,
    const ModelFit& fit, const simulate::Machine& machine, const Forecast& forecast);

}  // namespace isoscale::analysis::predict
