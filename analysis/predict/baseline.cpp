// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/baseline.hpp"

#include <algorithm>
#include <string_view>

#include "analysis/predict/forecast_point.hpp"

namespace isoscale::analysis {
namespace {

/// A cause below this share of the step limits nothing.
constexpr double least_limit = 0.001;

/// Between prediction and measurement at the baseline there is what the model misses there.
constexpr std::string_view untraced = "untraced";
constexpr std::string_view beyond_model = "beyond the model";

Waterfall lost_time(const StepLoss& of_point, const ForecastBaseline& baseline) {
  Waterfall result = waterfall(of_point, baseline.loss);
  // A simulated step has no other steps to differ from: traced and untraced are one.
  std::erase_if(result.lost, [](const LostTime& lost) { return lost.cause == "uneven steps"; });
  const auto last = std::ranges::find(result.lost, untraced, &LostTime::cause);
  if (last != result.lost.end()) last->cause = beyond_model;
  return result;
}

/// What the model misses is no property of the machine, and limits nothing.
std::string limit_of(const Waterfall& waterfall) {
  std::string limit;
  double most = least_limit * waterfall.measured;
  for (const LostTime& lost : waterfall.lost) {
    if (lost.cause == beyond_model || lost.seconds <= most) continue;
    most = lost.seconds;
    limit = lost.cause;
  }
  return limit;
}

}  // namespace

std::optional<StepLoss> step_loss(const Forecast& forecast) {
  if (!forecast.costs) return std::nullopt;
  const double step = forecast.step_time.value;
  return StepLoss{.step = step,
                  .traced = step,
                  .slowest = step,
                  .work = forecast.throughput.value * step,
                  .ranks = forecast.ranks,
                  .costs = *forecast.costs};
}

void set_against(const ForecastBaseline& baseline, Forecast& forecast) {
  const bool itself = !baseline.measured && forecast.ranks == baseline.ranks;
  const Uncertainty uncertainty = itself ? Uncertainty{} : forecast.uncertainty;
  const double speedup = forecast.throughput.value / baseline.throughput * baseline.ranks;
  forecast.speedup = expected(speedup, uncertainty);
  forecast.efficiency = expected(speedup / forecast.ranks, uncertainty);
  const std::optional<StepLoss> loss = step_loss(forecast);
  if (!loss || itself) return;
  forecast.waterfall = lost_time(*loss, baseline);
  forecast.limit = limit_of(*forecast.waterfall);
}

}  // namespace isoscale::analysis
