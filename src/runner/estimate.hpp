// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "config/run_config.hpp"
#include "runner/plan.hpp"
#include "units/quantity.hpp"

/// How long a point will take, before anything of it has been measured: from what its programs
/// say, and from rates that devices of a kind reach at least. The loop's part is a bound wherever
/// its fewest steps fit into the time; set-up and verification are a guess.
namespace isoscale::runner {

/// Steps that a loop is planned to have time for: three to warm up, a pair of blocks of two steps
/// and a last block of six, each with a step that is dropped; six or more of the untraced count. A
/// loop whose steps take longer than estimated plays fewer.
inline constexpr int fewest_steps = 20;
/// Plays of the step without its communication that follow the loop, at least.
inline constexpr int fewest_solo_plays = 4;

struct PointTime {
  units::Seconds set_up{}, verification{};
  units::Seconds least{};  ///< loop that the fewest steps, or the fewest plays of all cases, need
  units::Seconds most{};   ///< loop that is asked for; never below `least`
  /// What follows a loop in proportion to it: solo plays, traced plays of a micro-benchmark's
  /// cases.
  double stretch = 1;

  bool operator==(const PointTime&) const = default;
};

/// Of the whole point with a loop of this length.
[[nodiscard]] units::Seconds total(const PointTime& time, units::Seconds loop);
/// The same with set-up, verification and least loop `factor` times as long, and a loop of
/// `max_time` where that is more: how a point of which the like took longer or less long than
/// expected is expected to go.
[[nodiscard]] PointTime at_pace(const PointTime& time, double factor, units::Seconds max_time);

/// With s = FLOP / rate + bytes sent / bandwidth for one step of the busiest rank:
///   set-up        sessions x (communicators + memory / fill rate)
///   verification  a constant, and some for each rank
///   loop          least = 20 s, most = max(--max-time, least); then 1/10 of it, at least 4 s, solo
/// and of a micro-benchmark least = 0.1 s for each case, 3/10 of the loop traced. A point that is
/// skipped takes no time. Rates by device ("host", "cuda") and precision are in estimate.cpp and
/// docs/experiments.md.
[[nodiscard]] PointTime estimate(const PlannedPoint& point, const config::RunConfig& config,
                                 std::string_view device);

}  // namespace isoscale::runner
