// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "analysis/predict/whole_step.hpp"

namespace isoscale::analysis {

/// Why a step loses to the first of a search: what it spends more time on, the largest first, until
/// most of it is said. "0.31 s more tp transfer", "bubble 12% against 4%", "needs 3.1 GiB more
/// memory" where they are as fast. Both have been traced.
[[nodiscard]] std::string why_not(const WholeStep& loser, const WholeStep& first);

}  // namespace isoscale::analysis
