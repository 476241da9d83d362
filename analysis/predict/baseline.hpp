// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "analysis/efficiency/losses.hpp"
#include "analysis/predict/prediction.hpp"

namespace isoscale::analysis {

/// What a curve of forecasts is set against.
struct ForecastBaseline {
  int ranks = 1;
  double throughput = 0;  ///< work/s
  StepLoss loss{};
  bool measured = false;  ///< else a forecast of the curve
};

/// What the waterfall takes of a forecast; absent without costs.
[[nodiscard]] std::optional<StepLoss> step_loss(const Forecast& forecast);

/// Fills speed-up, efficiency, waterfall and limit. The baseline itself has efficiency 1 and no
/// interval when it is a forecast: nothing of it is uncertain against itself.
void set_against(const ForecastBaseline& baseline, Forecast& forecast);

}  // namespace isoscale::analysis
