// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/block_plan.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace isoscale::runner {
namespace {

constexpr double block_seconds = 0.05;
constexpr std::size_t least_block = 2, largest_block = 64;
constexpr double share_of_pairs = 0.5;
constexpr double share_of_few = 0.25;

}  // namespace

BlockPlan plan_blocks(units::Seconds step, units::Seconds left, Tracing tracing) {
  const auto steps_in = [&](double seconds, std::size_t least, std::size_t most) {
    return static_cast<std::size_t>(std::clamp(
        std::floor(seconds / step.value()), static_cast<double>(least), static_cast<double>(most)));
  };
  const std::size_t wanted = steps_in(block_seconds, least_block, largest_block);
  if (tracing == Tracing::off) return {.steps = wanted, .pairs = 0};
  const double time = std::max(left.value(), 0.0);
  // A pair has two blocks, and each of them a step that is dropped.
  const std::size_t fit = steps_in(share_of_pairs * time / (2 * least_pairs), 1, largest_block + 1);
  if (fit > least_block) return {.steps = std::min(wanted, fit - 1), .pairs = least_pairs};
  return {.steps = least_block,
          .pairs = steps_in(share_of_few * time / (2 * (least_block + 1)), 1, least_pairs - 1)};
}

units::Seconds warm_step(std::span<const double> warm_up_times) {
  const auto later = warm_up_times.subspan(warm_up_times.size() / 2);
  std::vector<double> times{later.begin(), later.end()};
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return units::Seconds{*middle};
}

}  // namespace isoscale::runner
