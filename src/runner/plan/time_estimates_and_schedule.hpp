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

#include "runner/plan/plan.hpp"
#include "settings/run_config.hpp"
#include "units/quantity.hpp"

/// Estimates how long the points of a run will take. Chooses which point is measured next and for
/// how long, so that the run ends within its budget (--budget).
namespace isoscale::runner::plan {

/// The number of steps in the shortest loop with a confidence interval: 3 of warm-up, 7 untraced
/// and 3 traced ones. The first untraced and the first traced one do not count.
inline constexpr int fewest_steps = 13;
/// The relative standard deviation of step times by which the length of a loop is estimated.
inline constexpr double assumed_scatter = 0.03;

struct PointTime {
  units::Seconds set_up{}, verification{};
  units::Seconds after{};  ///< time of the plays without communication, which follow the loop
  /// The time of the loop in three cases, ascending: the shortest possible loop (with the fewest
  /// steps or, for a micro-benchmark, the fewest plays of each case), the expected loop, and the
  /// longest loop that is allowed.
  units::Seconds least{}, likely{}, most{};
  /// The factor by which traced plays lengthen the loop of a micro-benchmark; 1 for other points.
  double stretch = 1;

  bool operator==(const PointTime&) const = default;
};

/// Returns the time of the whole point if its loop takes `loop`, or PointTime::least if longer.
[[nodiscard]] units::Seconds total(const PointTime& time, units::Seconds loop);
/// Returns a point's times multiplied by `factor`, since similar points took this many times as
/// long as estimated. The longest loop becomes `max_time`, or the expected loop if that is longer.
[[nodiscard]] PointTime at_pace(const PointTime& time, double factor, units::Seconds max_time);

/// Estimates how long a loop lasts whose steps take `step` on average and scatter by
/// `assumed_scatter`. For this it simulates StepLoop.
[[nodiscard]] units::Seconds loop_time(units::Seconds step, const settings::RunConfig& config);

/// Estimates the time of a point. Let s be the time of one step on the busiest rank: Load::step if
/// it is known, else FLOP / rate + bytes sent / bandwidth. The estimate has these parts:
///   set-up        sessions x (communicators + memory / fill rate)
///   verification  for each twin (two in narrow types and with grad_dtype) a constant and a time
///                 for each rank; two checked steps, and --soak
///   loop          likely = loop_time(s), least = 13 x s or likely if that is less,
///                 most = --max-time or likely if that is more
///   after         solo_plays() x s if steps are traced
/// For a micro-benchmark, s is the time of all cases together. Its likely loop is 2 x s for
/// warm-up, plus 0.01 seconds for each case, plus the timed plays, which take 6 x s, limited to
/// between 0.3 and 0.5 of --max-time. Its least loop is the same without these limits, or likely if
/// that is less. Traced plays lengthen the loop by 3/10 (PointTime::stretch). A point that is
/// skipped takes no time. The rates for each device ("host", "cuda") and precision are in
/// time_estimates_and_schedule.cpp and docs/experiments.md.
[[nodiscard]] PointTime estimate(const PlannedPoint& point, const settings::RunConfig& config,
                                 std::string_view device);

/// Returns the numbers 0 ... count - 1 in this order: the first, the last, the number in the middle
/// between these, then those in the middle of each remaining gap, and so on.
[[nodiscard]] std::vector<std::size_t> ends_then_middles(std::size_t count);

/// Returns the indices of all points of the plan, the most important ones first, for a run that may
/// not have time for all. They come in this order:
/// - the points that are skipped anyway, since they take no time
/// - the smallest rank count (the baseline) and the largest of the first experiment that shows how
///   a workload scales, so that there is a curve even if calibrations take long
/// - the smallest and the largest rank count of every experiment with the workload calibrate, since
///   they give the highest rates, to which others are compared
/// - all others: the experiments take turns, one point each, and an experiment that already has
///   more points than others waits for them
/// Within an experiment: the smallest rank count, the largest, then the middle of each gap.
[[nodiscard]] std::vector<int> most_telling_first(const Plan& plan);

/// The reason that is stored for a point for which the budget left no time; --resume measures it.
inline constexpr std::string_view budget_reason = "budget";
/// The reason that is stored for a point before which a signal asked the run to end.
inline constexpr std::string_view signal_reason = "signal";

/// The choice of next_portion(): a point, as an index into the list, and the time for its loop.
struct Portion {
  std::size_t at = 0;
  units::Seconds loop{};

  bool operator==(const Portion&) const = default;
};

/// Chooses the next point to measure in the time `left`, and the length of its loop; absent if no
/// point fits. The points are considered in the given order. A point is admitted if, besides the
/// points admitted before it, there is time for it with its shortest loop; a shorter point may thus
/// be admitted after one that was not. The time that remains is added to the loops of all admitted
/// points: these become equally long, as far as the `least` and `most` of each allow. The result is
/// the first admitted point.
[[nodiscard]] std::optional<Portion> next_portion(std::span<const PointTime> points,
                                                  units::Seconds left);

/// The point to measure next, and the time for it.
struct Turn {
  int index = 0;          ///< index of the point in the plan
  units::Seconds loop{};  ///< the time that its loop should take
  units::Seconds most{};  ///< limit of the loop while the step time has no confidence interval
};

/// Chooses the points of a plan one after another. Without a budget, they come in the order of the
/// plan, and each loop gets --max-time. With a budget, the most important points come first, and
/// each gets its share of the time that is left. If a point takes longer than estimated, the
/// estimates for other points of its workload are raised. They are lowered if it takes less time
/// than was estimated for its shortest loop. In a run only rank 0 asks for the next point, and
/// tells the other ranks what to measure.
class Schedule {
 public:
  /// `wanted` has the indices of the points to measure; of these, the points in `last` come after
  /// all others. The plan and the configuration must outlive the schedule.
  Schedule(const Plan& plan, const settings::RunConfig& config, std::string_view device,
           std::set<int> wanted, const std::set<int>& last = {});

  /// Returns the next point for a run that has lasted `elapsed`; absent if no point is left, or if
  /// none fits into the budget.
  [[nodiscard]] std::optional<Turn> next(units::Seconds elapsed) const;
  /// Marks a point as measured. `time` is how long it took, from which other estimates are adapted;
  /// absent if it failed, since a failed point does not show how long others take.
  void done(const Turn& turn, std::optional<units::Seconds> time);

  /// Returns the indices of the points that have not been measured yet.
  [[nodiscard]] const std::set<int>& waiting() const { return waiting_; }
  /// Returns the shortest time that any loop got because there was no time for --max-time; absent
  /// if every loop got --max-time.
  [[nodiscard]] std::optional<units::Seconds> shortest() const { return shortest_; }
  /// Returns the number of points whose loops got less time than --max-time.
  [[nodiscard]] int shortened() const { return shortened_; }

 private:
  [[nodiscard]] PointTime expected(const PlannedPoint& point) const;

  const Plan* plan_;
  const settings::RunConfig* config_;
  std::string_view device_;
  std::vector<int> order_;
  std::set<int> waiting_;
  /// For each workload: the times of its measured points, as multiples of their estimated times.
  std::map<std::string_view, std::vector<double>> paces_;
  std::optional<units::Seconds> shortest_;
  int shortened_ = 0;
};

/// Returns which points would be measured, by index, if each took exactly its estimated time, and
/// how long their loops would be. Without a budget, these are all points that are not skipped.
[[nodiscard]] std::map<int, units::Seconds> expected_loops(const Plan& plan,
                                                           const settings::RunConfig& config,
                                                           std::string_view device);

/// Returns a warning if none of the points of the plan's curves could be measured in the budget;
/// `waiting` has the points that were not measured. Absent if one was, or if there is no curve.
[[nodiscard]] std::optional<std::string> no_curve_warning(const Plan& plan,
                                                          const std::set<int>& waiting,
                                                          units::Seconds budget);

}  // namespace isoscale::runner::plan
