// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "analysis/predict/prediction.hpp"
#include "config/run_config.hpp"

namespace isoscale::analysis {

/// Rank counts of a page, over all its curves; of more each curve keeps its first, its last and
/// some between. With breakdown and waterfall a point takes some 2 kB.
inline constexpr std::size_t most_page_forecasts = 1500;

/// What the page of a prediction reads: kind "predict", and `prediction`, the JSON of predict
/// --format json. What is too long or too much for a page is cut, and `notes` says so.
[[nodiscard]] nlohmann::ordered_json prediction_page_data(const Prediction& prediction);

/// Writes the prediction's page; see write_output_file for what it throws, and require_page.
void write_prediction_page_file(const Prediction& prediction, const std::filesystem::path& path,
                                config::IfExists if_exists);

}  // namespace isoscale::analysis
