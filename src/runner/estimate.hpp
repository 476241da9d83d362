// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "config/run_config.hpp"
#include "runner/plan.hpp"
#include "units/quantity.hpp"

/// How long a point will take, before anything of it has been measured: from what its programs
/// say, from rates that devices of a kind reach, and from the rules of its loop.
namespace isoscale::runner {

/// Steps of the shortest loop that has an interval: three to warm up, seven of which six count, and
/// three of which two are traced.
inline constexpr int fewest_steps = 13;
/// How much step times are assumed to scatter, relative: decides when a loop is precise enough.
inline constexpr double assumed_scatter = 0.03;

struct PointTime {
  units::Seconds set_up{}, verification{};
  units::Seconds after{};  ///< the step without communication
  /// Loop that the fewest steps, or the fewest plays of all cases, need; that is expected; and that
  /// is asked for. Each is at least the one before.
  units::Seconds least{}, likely{}, most{};
  /// Times the loop with what follows it in proportion: traced plays of a micro-benchmark's cases.
  double stretch = 1;

  bool operator==(const PointTime&) const = default;
};

/// Of the whole point with a loop of this length.
[[nodiscard]] units::Seconds total(const PointTime& time, units::Seconds loop);
/// The same with everything but the loop that is asked for `factor` times as long, and that
/// `max_time` where it is more: how a point of which the like took longer or less long than
/// expected is expected to go.
[[nodiscard]] PointTime at_pace(const PointTime& time, double factor, units::Seconds max_time);

/// How long a loop lasts whose steps take `step` each and scatter by `assumed_scatter`: StepLoop,
/// played on a clock that nobody waits for.
[[nodiscard]] units::Seconds loop_time(units::Seconds step, const config::RunConfig& config);

/// With s = FLOP / rate + bytes sent / bandwidth for one step of the busiest rank, or Load::step:
///   set-up        sessions x (communicators + memory / fill rate)
///   verification  a constant, some for each rank, and two checked steps
///   loop          least = 13 s, likely = loop_time(s), most = max(--max-time, likely)
///   after it      solo_plays() x s
/// and of a micro-benchmark, whose s is that of all cases together, 2 s and 0.01 s for each case
/// and 6 s more, but no less than 0.3 and no more than 0.5 of --max-time; 3/10 of that traced. A
/// point that is skipped takes no time. Rates by device ("host", "cuda") and precision are in
/// estimate.cpp and docs/experiments.md.
[[nodiscard]] PointTime estimate(const PlannedPoint& point, const config::RunConfig& config,
                                 std::string_view device);

}  // namespace isoscale::runner
