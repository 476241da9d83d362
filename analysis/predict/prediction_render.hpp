// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analysis/predict/prediction.hpp"

namespace isoscale::analysis {

[[nodiscard]] std::string render_text(const Prediction& prediction);
/// docs/predicting.md has the keys.
[[nodiscard]] std::string render_json(const Prediction& prediction);
[[nodiscard]] nlohmann::ordered_json prediction_json(const Prediction& prediction);
/// A row for each rank count of each curve.
[[nodiscard]] std::string render_csv(const Prediction& prediction);

}  // namespace isoscale::analysis
