// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "analysis/predict/prediction.hpp"
#include "analysis/predict/question.hpp"

namespace isoscale::analysis {

/// Everything that was asked. Throws base::UsageError for what is impossible. With a search, rank
/// counts for which it finds nothing are refused one by one, and all of them only together.
[[nodiscard]] Prediction predict(const Question& question);

/// Where the cause that costs most changes along a curve, one sentence each; what it is all along
/// where it does not change.
[[nodiscard]] std::vector<std::string> limit_sentences(const ForecastCurve& curve);

}  // namespace isoscale::analysis
