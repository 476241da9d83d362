// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"
#include "runner/plan/plan.hpp"
#include "units/quantity.hpp"

/// The schedule of a run. It estimates how long points will take before any is measured, and
/// chooses which point is measured next and for how long, so that a run ends in time.
namespace isoscale::runner {

/// Steps of the shortest loop that has an interval: three to warm up, seven untraced of which six
/// count, and three traced of which two count.
inline constexpr int fewest_steps = 13;
/// The relative scatter that step times are assumed to have; the estimate of when a loop is precise
/// enough depends on it.
inline constexpr double assumed_scatter = 0.03;

struct PointTime {
  units::Seconds set_up{}, verification{};
  units::Seconds after{};  ///< the step without communication
  /// The loop that the fewest steps (or the fewest plays of all cases) need, the loop that is
  /// expected, and the loop that is asked for. Each is at least as long as the one before.
  units::Seconds least{}, likely{}, most{};
  /// The loop times this factor is the loop with the part that grows in proportion: the traced
  /// plays of a micro-benchmark's cases.
  double stretch = 1;

  bool operator==(const PointTime&) const = default;
};

/// Returns the time of the whole point with a loop of this length.
[[nodiscard]] units::Seconds total(const PointTime& time, units::Seconds loop);
/// Returns the expected time of a point if similar points took `factor` times as long as expected.
/// The loop that is asked for becomes `max_time`, or the expected loop if that is longer.
[[nodiscard]] PointTime at_pace(const PointTime& time, double factor, units::Seconds max_time);

/// Estimates how long a loop lasts whose steps take `step` each and scatter by `assumed_scatter`.
/// It simulates StepLoop without waiting.
[[nodiscard]] units::Seconds loop_time(units::Seconds step, const config::RunConfig& config);

/// Estimates the time of a point. Let s be the time of one step of the busiest rank: FLOP / rate +
/// bytes sent / bandwidth, or Load::step. Then the parts are
///   set-up        sessions x (communicators + memory / fill rate)
///   verification  a constant, a time for each rank, two checked steps, and --soak
///   loop          least = 13 s, likely = loop_time(s), most = max(--max-time, likely)
///   after it      solo_plays() x s
/// For a micro-benchmark, s is the time of all cases together. Its likely loop is 2 s, plus 0.01
/// seconds for each case, plus 6 s limited to between 0.3 and 0.5 of --max-time; traced plays take
/// 3/10 of that in addition. A point that is skipped takes no time. Rates by device ("host",
/// "cuda") and precision are in schedule.cpp and docs/experiments.md.
[[nodiscard]] PointTime estimate(const PlannedPoint& point, const config::RunConfig& config,
                                 std::string_view device);

/// Returns 0 ... count - 1 in another order: the first, the last, then the middle of each gap, gap
/// after gap.
[[nodiscard]] std::vector<std::size_t> ends_then_middles(std::size_t count);

/// Returns the indices of all points of the plan, the most telling first, for a run that may not
/// have time for all. Points that are skipped anyway come first. Within an experiment the smallest
/// count (the baseline) comes first, then its largest, then the middle of each gap between those.
/// Both ends of the first curve come before all else, so that there is a curve however long
/// calibrations take. Then come the ends of every calibration, without which there is no ceiling to
/// compare with. Then the experiments take turns, one point each; an experiment waits while it is
/// ahead of the others.
[[nodiscard]] std::vector<int> most_telling_first(const Plan& plan);

/// The reason of a point that was left out because there was no time left; --resume measures it.
inline constexpr std::string_view budget_reason = "budget";
/// The reason of a point that was not measured because a signal asked the run to end soon.
inline constexpr std::string_view signal_reason = "signal";

/// The point of a list to measure now, and the time of its loop.
struct Portion {
  std::size_t at = 0;
  units::Seconds loop{};

  bool operator==(const Portion&) const = default;
};

/// Returns the first of the points that get a portion of the time `left`. Points are taken in the
/// order given as long as each fits with its least loop; later points that are short enough still
/// get in. The time left over goes to the loops, the same for all, but no loop gets more than was
/// asked for. Absent if no point fits.
[[nodiscard]] std::optional<Portion> next_portion(std::span<const PointTime> points,
                                                  units::Seconds left);

/// The point to measure next.
struct Turn {
  int index = 0;          ///< of the plan
  units::Seconds loop{};  ///< as long as the loop is asked to last
  units::Seconds most{};  ///< as long as it may last while there is no interval
};

/// Hands out the points of a plan one after the other. Without a budget they come in the order of
/// the plan, each with --max-time; with a budget the most telling come first, each with its portion
/// of the time left. If a point took longer than its estimate, the estimates of its workload's
/// other points grow; if it took less than its fewest steps were expected to need, they shrink.
/// Used by one rank, which tells the others.
class Schedule {
 public:
  /// `wanted` holds the indices of the points to measure. The plan and the configuration must
  /// outlive the schedule.
  Schedule(const Plan& plan, const config::RunConfig& config, std::string_view device,
           std::set<int> wanted);

  /// Returns the next turn when the run has lasted `elapsed`; absent if no point is left, or none
  /// fits.
  [[nodiscard]] std::optional<Turn> next(units::Seconds elapsed) const;
  /// Notes that a point has had its turn and took `time`. The time is absent if the point failed,
  /// since that says nothing about how long others take.
  void done(const Turn& turn, std::optional<units::Seconds> time);

  /// Returns the points that have not been measured, ascending.
  [[nodiscard]] const std::set<int>& waiting() const { return waiting_; }
  /// Returns the shortest loop of all points whose loop was shorter than asked for; absent if none
  /// was.
  [[nodiscard]] std::optional<units::Seconds> shortest() const { return shortest_; }
  [[nodiscard]] int shortened() const { return shortened_; }

 private:
  [[nodiscard]] PointTime expected(const PlannedPoint& point) const;

  /// The time that a measured point took, as a multiple of its estimate.
  struct Experience {
    std::string_view workload;
    double factor = 1;
  };

  const Plan* plan_;
  const config::RunConfig* config_;
  std::string_view device_;
  std::vector<int> order_;
  std::set<int> waiting_;
  std::vector<Experience> experience_;
  std::optional<units::Seconds> shortest_;
  int shortened_ = 0;
};

/// Returns the loops of the points that would be measured if each took its estimated time, by
/// index. Without a budget these are all points that are not skipped.
[[nodiscard]] std::map<int, units::Seconds> expected_loops(const Plan& plan,
                                                           const config::RunConfig& config,
                                                           std::string_view device);

/// Returns the warning for a run whose budget left out all points of its curves; `waiting` holds
/// the points that were left out. Absent if one was measured, or the plan has no curve.
[[nodiscard]] std::optional<std::string> no_curve_warning(const Plan& plan,
                                                          const std::set<int>& waiting,
                                                          units::Seconds budget);

}  // namespace isoscale::runner
