// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/warm_up.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "units/text.hpp"

namespace isoscale::runner {
namespace {

constexpr std::size_t least_steps = 3;
constexpr std::size_t steps_to_tell = 16;  // fewer show no change, however clear
constexpr double least_share = 0.1;        // of max_time, at least, up to least_seconds
constexpr double least_seconds = 0.5;      // enough for clocks and caches
constexpr double share_to_tell = 0.1;      // of max_time, at most, until there are steps_to_tell
constexpr double largest_share = 0.3;      // of max_time, at most

}  // namespace

std::optional<std::string> WarmUp::over(std::span<const double> times, units::Seconds elapsed) {
  const std::size_t steps = times.size();
  const double share = elapsed / max_time_;
  if (share < largest_share && steps < least_steps) return std::nullopt;
  if (elapsed.value() < std::min(least_share * max_time_.value(), least_seconds)) {
    return std::nullopt;
  }
  if (!last_change_) return fmt::format("{} steps; nobody looked for a change", steps);
  if (steps < steps_to_tell) {
    if (share < share_to_tell) return std::nullopt;
    return fmt::format("{}: too few to see a change", base::counted(steps, "step"));
  }
  const bool is_late = share >= largest_share;
  if (steps < next_check_ && !is_late) return std::nullopt;
  next_check_ = steps + std::max<std::size_t>(1, steps / 4);
  const std::size_t change = last_change_(times, smallest_);
  if (change == 0) return fmt::format("no change in {} steps", steps);
  const std::size_t settled = steps - change;
  if (settled >= std::max(steps_to_tell, change / 2)) {
    return fmt::format("no change in the last {} of {} steps", settled, steps);
  }
  if (!is_late) return std::nullopt;
  return fmt::format("gave up after {}: still changing", units::format(elapsed));
}

}  // namespace isoscale::runner
