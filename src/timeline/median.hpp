// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "units/quantity.hpp"

namespace isoscale::timeline {

/// Of at least one duration, whose order changes; of an even number the mean of the two in the
/// middle: the larger one would make sums of medians exceed sums of means.
[[nodiscard]] inline units::Nanoseconds median(std::vector<units::Nanoseconds>& durations) {
  const auto half = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2);
  std::nth_element(durations.begin(), half, durations.end());
  if (durations.size() % 2 == 1) return *half;
  return (*std::max_element(durations.begin(), half) + *half) / 2;
}

}  // namespace isoscale::timeline
