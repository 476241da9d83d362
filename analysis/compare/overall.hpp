// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "analysis/compare/comparison.hpp"

namespace isoscale::analysis {

/// Each side but the first over all points that were compared with the first; see Overall.
[[nodiscard]] std::vector<Overall> overall(const Comparison& of);

/// "new is 12% slower than old over all 9 points, between 9% and 15%; mostly dp transfer". Where no
/// difference is established it says so and gives the size as measured.
[[nodiscard]] std::string overall_sentence(const Comparison& of, const Overall& at);

}  // namespace isoscale::analysis
