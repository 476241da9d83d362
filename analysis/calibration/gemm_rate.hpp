// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "results/calibration_data.hpp"

/// Rate of matrix multiplications against their shape.
namespace isoscale::analysis {

/// Fills `held_out` of each shape.
void add_held_out(std::vector<results::GemmRate>& gemms);

/// The ceiling of each element type: the best of `rows`, each the median of one measured row, warm
/// or cold. Rows of labelled points count only where there are no others. The error is that of the
/// shapes `gemms`.
[[nodiscard]] std::vector<results::GemmCeiling> ceilings_of(
    std::span<const results::GemmRate> rows, std::span<const results::GemmRate> gemms);

/// The ceiling of an element type; null where none was measured. Not owned.
[[nodiscard]] const results::GemmCeiling* ceiling_of(const results::CalibrationData& calibration,
                                                     std::string_view dtype);

struct RatePrediction {
  double rate = 0;                     ///< FLOP/s
  std::optional<double> lower, upper;  ///< by the ceiling's error
};
/// For a shape that need not have been measured: the rate of the nearest one of that element type
/// and of the ceiling's cache state, where distance is that of (log FLOP, log smallest extent).
/// Absent where no such shape was measured.
[[nodiscard]] std::optional<RatePrediction> predict_rate(
    const results::CalibrationData& calibration, const results::GemmRate& shape);

}  // namespace isoscale::analysis
