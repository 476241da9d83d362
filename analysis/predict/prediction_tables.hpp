// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/predict/prediction.hpp"
#include "analysis/render/text_table.hpp"

/// A prediction for people, piece by piece; all text is escaped.
namespace isoscale::analysis {

/// Measured points first, then the forecasts with their intervals and where these come from.
[[nodiscard]] TitledTable forecast_table(const Prediction& prediction);
/// Where a step would go, memory and MFU; absent where no breakdown is known.
[[nodiscard]] std::optional<TitledTable> parts_table(const ForecastCurve& curve);
/// What each cause would cost, a column a rank count; with `beside`, the same of another curve in
/// columns between. Absent where nothing has a waterfall.
[[nodiscard]] std::optional<TitledTable> lost_time_table(const ForecastCurve& curve,
                                                         const ForecastCurve* beside = nullptr);
/// A curve on a changed machine beside the base: rate of a rank, MFU and step time first.
[[nodiscard]] TitledTable what_if_table(const Prediction& prediction, const ForecastCurve& changed);
/// What a search found best; absent without one.
[[nodiscard]] std::optional<TitledTable> best_table(const Prediction& prediction);

}  // namespace isoscale::analysis
