// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace isoscale::analysis {

inline bool all_finite(std::span<const double> samples) {
  return std::ranges::all_of(samples, [](double sample) { return std::isfinite(sample); });
}

}  // namespace isoscale::analysis
