// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/predict/question.hpp"

namespace isoscale::analysis {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// Puts what --set gives into a question whose workload is known: parts of the machine as what-ifs,
/// one a setting, and the rest as options of the workload, which are `fixed` then. Of batch,
/// microbatch and microbatches, what the base has and the settings contradict goes. Throws
/// base::UsageError for a key that neither knows, twice the same, and a value without meaning.
void apply_settings(const Settings& settings, Question& question);

/// Whether a setting changes how much work a step is.
[[nodiscard]] bool changes_work(const Settings& settings);

}  // namespace isoscale::analysis
