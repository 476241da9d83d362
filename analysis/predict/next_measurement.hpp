// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/predict/prediction.hpp"
#include "analysis/predict/question.hpp"
#include "analysis/predict/run_machine.hpp"
#include "results/run_data.hpp"
#include "simulate/machine.hpp"

namespace isoscale::analysis {

/// Half of the 90% interval in standard deviations of a normal distribution.
inline constexpr double interval_90 = 1.6448536269514722;

/// The command that measures `request`.
[[nodiscard]] std::string command_of(const Question& question, const workloads::Request& request);

/// A sentence that says which model file to write before the commands for the question's run can be
/// run, with its keys; "" where each names a built-in model or a file that the run was given.
[[nodiscard]] std::string model_to_write(const Question& question);

/// All parts as one relative standard deviation.
[[nodiscard]] double total(const Uncertainty& uncertainty);
/// The width of the 90% interval of an efficiency, on a logarithmic scale: its error is relative.
[[nodiscard]] double interval_width(double efficiency, const Uncertainty& uncertainty);

/// The measurements that could be made next, each with the interval that the efficiency of
/// `forecast` would then have, narrowest first:
///   the curve on twice its ranks  one more point that was predicted, and less far to go
///   collectives on twice the ranks  the law of their latency is known, or goes on from further up
///   the same for four times as long  medians of the points are known twice as well
///   another launch                launches are known apart; both together, their mean
/// `points` are those that `fit` is of.
[[nodiscard]] std::vector<NextMeasurement> next_measurements(
    const results::RunData& run, const std::vector<const results::PointData*>& points,
    const ModelFit& fit, const simulate::Machine& machine, const Forecast& forecast);

/// The best of them; absent where none narrows the interval by a fiftieth.
[[nodiscard]] std::optional<NextMeasurement> next_measurement(
    const results::RunData& run, const std::vector<const results::PointData*>& points,
    const ModelFit& fit, const simulate::Machine& machine, const Forecast& forecast);

}  // namespace isoscale::analysis
