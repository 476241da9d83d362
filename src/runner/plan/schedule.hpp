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

/// The schedule of a run: estimates of how long points will take, before anything of them has been
/// measured, and which point is measured next, and for how long, so that a run ends in time.
namespace isoscale::runner {

/// Steps of the shortest loop that has an interval: three to warm up, seven of which six count, and
/// three of which two are traced.
inline constexpr int fewest_steps = 13;
/// The relative scatter that step times are assumed to have: decides when a loop is precise enough.
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

/// Returns the time of the whole point with a loop of this length.
[[nodiscard]] units::Seconds total(const PointTime& time, units::Seconds loop);
/// The same with everything but the loop that is asked for `factor` times as long, and that
/// `max_time` where it is more: how a point of which the like took longer or less long than
/// expected is expected to go.
[[nodiscard]] PointTime at_pace(const PointTime& time, double factor, units::Seconds max_time);

/// Estimates how long a loop lasts whose steps take `step` each and scatter by `assumed_scatter`:
/// StepLoop, played on a clock that nobody waits for.
[[nodiscard]] units::Seconds loop_time(units::Seconds step, const config::RunConfig& config);

/// Estimates the time of a point. With s = FLOP / rate + bytes sent / bandwidth for one step of the
/// busiest rank, or Load::step:
///   set-up        sessions x (communicators + memory / fill rate)
///   verification  a constant, some for each rank, and two checked steps
///   loop          least = 13 s, likely = loop_time(s), most = max(--max-time, likely)
///   after it      solo_plays() x s
/// and of a micro-benchmark, whose s is that of all cases together, 2 s and 0.01 s for each case
/// and 6 s more, but no less than 0.3 and no more than 0.5 of --max-time; 3/10 of that traced. A
/// point that is skipped takes no time. Rates by device ("host", "cuda") and precision are in
/// schedule.cpp and docs/experiments.md.
[[nodiscard]] PointTime estimate(const PlannedPoint& point, const config::RunConfig& config,
                                 std::string_view device);

/// Returns 0 ... count - 1 in another order: the first, the last, then the middle of each gap, gap
/// after gap.
[[nodiscard]] std::vector<std::size_t> ends_then_middles(std::size_t count);

/// Returns the indices of all points of the plan, the most telling first, for a run that may not
/// have time for all. Those that are skipped anyway first. Of each experiment its smallest count
/// (the baseline), its largest, then the middle of each gap between those. First both ends of the
/// first curve, so that there is one however long calibrations take; then the ends of every
/// calibration, without which nothing has a ceiling; then the experiments take turns, one point
/// each, those that are ahead last.
[[nodiscard]] std::vector<int> most_telling_first(const Plan& plan);

/// The reason of a point that was left out since there was no time left; --resume measures it.
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
/// order given as long as each fits with its least loop; later ones that are short enough still get
/// in. What is left over goes to the loops, the same for all, but no loop gets more than was asked
/// for. Absent when no point fits.
[[nodiscard]] std::optional<Portion> next_portion(std::span<const PointTime> points,
                                                  units::Seconds left);

/// The point to measure next.
struct Turn {
  int index = 0;          ///< of the plan
  units::Seconds loop{};  ///< as long as the loop is asked to last
  units::Seconds most{};  ///< as long as it may last while there is no interval
};

/// Hands out the points of a plan one after the other: without a budget in the order of the plan,
/// each with --max-time; with one, the most telling first, each with its portion of what is left.
/// Points that take longer than their estimate make the estimates of the workload's others longer,
/// and those that take less than their fewest steps were thought to need make them shorter.
/// Used by one rank, which tells the others.
class Schedule {
 public:
  /// `wanted`: indices of the points to measure. The plan and the configuration must outlive it.
  Schedule(const Plan& plan, const config::RunConfig& config, std::string_view device,
           std::set<int> wanted);

  /// `elapsed` of the run. Nothing when there is no point left, or none that fits.
  [[nodiscard]] std::optional<Turn> next(units::Seconds elapsed) const;
  /// Notes that a point has had its turn and took `time`; absent where it failed, since that says
  /// nothing of how long others take.
  void done(const Turn& turn, std::optional<units::Seconds> time);

  /// Points that have not been measured, ascending.
  [[nodiscard]] const std::set<int>& waiting() const { return waiting_; }
  /// The shortest loop of a point that had less than it was asked to have; absent: none had.
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

/// Returns the loops of the points that would be measured if each took as long as it is estimated
/// to, by index: without a budget all that are not skipped.
[[nodiscard]] std::map<int, units::Seconds> expected_loops(const Plan& plan,
                                                           const config::RunConfig& config,
                                                           std::string_view device);

/// Returns the sentence for a run whose budget left out (`waiting`) all points of its curves;
/// absent when it measured one, and when it has none.
[[nodiscard]] std::optional<std::string> no_curve_warning(const Plan& plan,
                                                          const std::set<int>& waiting,
                                                          units::Seconds budget);

}  // namespace isoscale::runner
