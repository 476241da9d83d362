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

/// The schedule of a run: it estimates how long points will take, and chooses which point is
/// measured next and for how long, so that a run ends within its budget.
namespace isoscale::runner::plan {

/// The number of steps in the shortest loop that gives an interval: three of warm-up, seven
/// untraced ones of which six count, and three traced ones of which two count.
inline constexpr int fewest_steps = 13;
/// The relative scatter that step times are assumed to have. The estimated length of a loop depends
/// on it.
inline constexpr double assumed_scatter = 0.03;

struct PointTime {
  units::Seconds set_up{}, verification{};
  units::Seconds after{};  ///< time of the step without communication, which follows the loop
  /// The times of three loops, ascending: the shortest possible one (with the fewest steps, or the
  /// fewest plays of all cases), the expected one, and the longest one that may be measured.
  units::Seconds least{}, likely{}, most{};
  /// The factor by which traced plays of a micro-benchmark's cases lengthen its loop.
  double stretch = 1;

  bool operator==(const PointTime&) const = default;
};

/// Returns the time of the whole point if its loop takes `loop`.
[[nodiscard]] units::Seconds total(const PointTime& time, units::Seconds loop);
/// Returns the expected time of a point after similar points took `factor` times as long as
/// expected. The longest loop becomes `max_time`, or the expected loop if that is longer.
[[nodiscard]] PointTime at_pace(const PointTime& time, double factor, units::Seconds max_time);

/// Estimates how long a loop lasts if its steps take `step` on average with a scatter of
/// `assumed_scatter`. It simulates StepLoop.
[[nodiscard]] units::Seconds loop_time(units::Seconds step, const settings::RunConfig& config);

/// Estimates the time of a point. Let s be the time of one step of the busiest rank: Load::step if
/// it is known, else FLOP / rate + bytes sent / bandwidth. Then the parts are
///   set-up        sessions x (communicators + memory / fill rate)
///   verification  a constant, a time for each rank, two checked steps, and --soak
///   loop          likely = loop_time(s), least = 13 x s or likely if that is less,
///                 most = --max-time or likely if that is more
///   after it      solo_plays() x s
/// For a micro-benchmark, s is the time of all cases together. The likely loop then is 2 x s, plus
/// 0.01 seconds for each case, plus the timed plays: 6 x s, limited to between 0.3 and 0.5 of
/// --max-time. Traced plays lengthen the loop by 3/10 (PointTime::stretch). A point that is skipped
/// takes no time. Rates by device ("host", "cuda") and precision are in schedule.cpp and
/// docs/experiments.md.
[[nodiscard]] PointTime estimate(const PlannedPoint& point, const settings::RunConfig& config,
                                 std::string_view device);

/// Returns the numbers 0 ... count - 1 in another order: the first, the last, then the middle of
/// each gap between them, and so on.
[[nodiscard]] std::vector<std::size_t> ends_then_middles(std::size_t count);

/// Returns the indices of all points of the plan, the most important ones first, for a run that may
/// not have time for all. Points that are skipped anyway come first. Within an experiment the order
/// is: the smallest rank count (the baseline), the largest, then the middle of each gap. The
/// baseline and the largest count of the first curve precede everything else, so that there is a
/// curve even if calibrations take long. The smallest and the largest count of every calibration
/// follow, which give the highest rates to compare with. Then the experiments take turns, one point
/// each; an experiment that already has more points than others waits for them.
[[nodiscard]] std::vector<int> most_telling_first(const Plan& plan);

/// The reason of a point that was left out because the budget was used up; --resume measures it.
inline constexpr std::string_view budget_reason = "budget";
/// The reason of a point that was left out because a signal asked the run to end soon.
inline constexpr std::string_view signal_reason = "signal";

/// The point to measure now, as an index into a list, and the time for its loop.
struct Portion {
  std::size_t at = 0;
  units::Seconds loop{};

  bool operator==(const Portion&) const = default;
};

/// Returns the first point that gets a share of the time `left`, and its loop; absent if no point
/// fits. Points are admitted in the given order if they fit with their shortest loop. If one does
/// not fit, later points that are short enough are still admitted. The remaining time is then added
/// to the loops, which become equally long, but none longer than was asked for.
[[nodiscard]] std::optional<Portion> next_portion(std::span<const PointTime> points,
                                                  units::Seconds left);

/// The next point to measure.
struct Turn {
  int index = 0;          ///< index of the point in the plan
  units::Seconds loop{};  ///< the time that its loop should take
  units::Seconds most{};  ///< limit while the step time has no interval
};

/// Gives out the points of a plan one after another. Without a budget they come in the order of the
/// plan, each with --max-time. With a budget the most important ones come first, each with its
/// share of the time left. If a point takes longer than estimated, the estimates for other points
/// of its workload are raised; if it takes less time than its shortest loop was expected to need,
/// they are lowered. Only rank 0 uses a schedule, and tells the other ranks.
class Schedule {
 public:
  /// `wanted` holds the indices of the points to measure; those in `last` come after all others.
  /// The plan and the configuration must outlive the schedule.
  Schedule(const Plan& plan, const settings::RunConfig& config, std::string_view device,
           std::set<int> wanted, const std::set<int>& last = {});

  /// Returns the next point when the run has lasted `elapsed`; absent if no point is left or none
  /// fits into the budget.
  [[nodiscard]] std::optional<Turn> next(units::Seconds elapsed) const;
  /// Marks a point as done; it took `time`. `time` is absent if the point failed, since a failed
  /// point does not show how long others take.
  void done(const Turn& turn, std::optional<units::Seconds> time);

  /// Returns the points that have not been measured, ascending.
  [[nodiscard]] const std::set<int>& waiting() const { return waiting_; }
  /// Returns the time of the shortest loop that a point got because --max-time did not fit into the
  /// budget; absent if every loop got --max-time.
  [[nodiscard]] std::optional<units::Seconds> shortest() const { return shortest_; }
  /// Returns the number of points whose loop got less than --max-time.
  [[nodiscard]] int shortened() const { return shortened_; }

 private:
  [[nodiscard]] PointTime expected(const PlannedPoint& point) const;

  const Plan* plan_;
  const settings::RunConfig* config_;
  std::string_view device_;
  std::vector<int> order_;
  std::set<int> waiting_;
  /// The times that the measured points of each workload took, as multiples of their estimates.
  std::map<std::string_view, std::vector<double>> paces_;
  std::optional<units::Seconds> shortest_;
  int shortened_ = 0;
};

/// Returns the loop times, by index, of the points that would be measured if each took exactly its
/// estimated time. Without a budget these are all points that are not skipped.
[[nodiscard]] std::map<int, units::Seconds> expected_loops(const Plan& plan,
                                                           const settings::RunConfig& config,
                                                           std::string_view device);

/// Returns the warning for a run that has no time for any point of its curves; `waiting` holds the
/// points that were left out. Absent if such a point was measured, or if the plan has no curve.
[[nodiscard]] std::optional<std::string> no_curve_warning(const Plan& plan,
                                                          const std::set<int>& waiting,
                                                          units::Seconds budget);

}  // namespace isoscale::runner::plan
