// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runner/order.hpp"
#include "runner/step_loop.hpp"
#include "units/text.hpp"

namespace isoscale::runner {
namespace {

/// Of the budget, to write the end of the run in.
constexpr double share_of_end = 0.02;

/// The loop that all of `points` can have at once: time left over from what they need at least,
/// dealt out from the shortest up. Between the least and the most loop of any of them.
units::Seconds common_loop(std::span<const PointTime> points, units::Seconds left) {
  std::vector<units::Seconds> levels;
  for (const PointTime& point : points) levels.insert(levels.end(), {point.least, point.most});
  std::ranges::sort(levels);
  const auto cost = [&](units::Seconds level) {
    units::Seconds sum{0};
    for (const PointTime& point : points) {
      sum += total(point, std::clamp(level, point.least, point.most));
    }
    return sum;
  };
  // The cost grows with the level, and between two levels in a straight line.
  units::Seconds low = levels.front();
  for (const units::Seconds high : levels) {
    if (cost(high) <= left) {
      low = high;
      continue;
    }
    const units::Seconds below = cost(low);
    return low + ((left - below) / (cost(high) - below)) * (high - low);
  }
  return levels.back();
}

/// How long a point takes for what it was thought to. Where a loop ended early, all that is known
/// is that what is needed at least took no longer than the whole.
double pace(const PointTime& thought, units::Seconds loop, units::Seconds time) {
  const units::Seconds whole = total(thought, loop);
  if (time >= whole) return time / whole;
  return std::min(1.0, time / total(thought, thought.least));
}

/// The points by which work is seen to scale, of those that are not skipped anyway.
std::set<int> points_of_curves(const Plan& plan) {
  std::set<int> indices;
  for (const PlannedPoint& point : plan.points) {
    if (point.skip_reason.empty() && !point.workload->is_bench()) indices.insert(point.index);
  }
  return indices;
}

}  // namespace

std::optional<Portion> next_portion(std::span<const PointTime> points, units::Seconds left) {
  std::vector<PointTime> fitting;
  std::optional<std::size_t> first;
  units::Seconds needed{0};
  for (std::size_t i = 0; i < points.size(); ++i) {
    const units::Seconds least = total(points[i], points[i].least);
    if (needed + least > left) continue;
    needed += least;
    fitting.push_back(points[i]);
    if (!first) first = i;
  }
  if (!first) return std::nullopt;
  const PointTime& point = points[*first];
  return Portion{.at = *first,
                 .loop = std::clamp(common_loop(fitting, left), point.least, point.most)};
}

Turns::Turns(const Plan& plan, const config::RunConfig& config, std::string_view device,
             std::set<int> wanted)
    : plan_(&plan), config_(&config), device_(device), waiting_(std::move(wanted)) {
  if (config.budget) {
    order_ = most_telling_first(plan);
  } else {
    for (const PlannedPoint& point : plan.points) order_.push_back(point.index);
  }
}

PointTime Turns::expected(const PlannedPoint& point) const {
  double sum = 0;
  int count = 0;
  for (const Experience& one : experience_) {
    if (one.workload != point.workload->name) continue;
    sum += one.factor;
    ++count;
  }
  const PointTime time = estimate(point, *config_, device_);
  return count == 0 ? time : at_pace(time, sum / count, config_->max_time);
}

std::optional<Turn> Turns::next(units::Seconds elapsed) const {
  std::vector<int> waiting;
  std::ranges::copy_if(order_, std::back_inserter(waiting),
                       [&](int index) { return waiting_.contains(index); });
  if (waiting.empty()) return std::nullopt;
  const units::Seconds asked = config_->max_time, most = longest_overtime * asked;
  if (!config_->budget) return Turn{.index = waiting.front(), .loop = asked, .most = most};
  std::vector<PointTime> times;
  for (const int index : waiting) {
    times.push_back(expected(plan_->points[static_cast<std::size_t>(index)]));
  }
  const units::Seconds left = (1 - share_of_end) * *config_->budget - elapsed;
  const auto portion = next_portion(times, left);
  if (!portion) return std::nullopt;
  units::Seconds spare = left;  // once every point has had what is asked for
  for (const PointTime& time : times) spare -= total(time, time.most);
  return Turn{.index = waiting[portion->at],
              .loop = std::min(portion->loop, asked),
              .most = std::min(portion->loop + std::max(spare, units::Seconds{0}), most)};
}

void Turns::done(const Turn& turn, std::optional<units::Seconds> time) {
  waiting_.erase(turn.index);
  const PlannedPoint& point = plan_->points[static_cast<std::size_t>(turn.index)];
  if (!point.skip_reason.empty()) return;
  if (time) {
    experience_.push_back({.workload = point.workload->name,
                           .factor = pace(estimate(point, *config_, device_), turn.loop, *time)});
  }
  if (turn.loop >= config_->max_time) return;
  ++shortened_;
  shortest_ = std::min(shortest_.value_or(turn.loop), turn.loop);
}

std::map<int, units::Seconds> expected_loops(const Plan& plan, const config::RunConfig& config,
                                             std::string_view device) {
  std::set<int> all;
  for (const PlannedPoint& point : plan.points) all.insert(point.index);
  Turns turns{plan, config, device, all};
  std::map<int, units::Seconds> loops;
  units::Seconds elapsed{0};
  while (const auto turn = turns.next(elapsed)) {
    const PlannedPoint& point = plan.points[static_cast<std::size_t>(turn->index)];
    const PointTime time = estimate(point, config, device);
    const units::Seconds loop = std::clamp(
        config.budget ? std::min(turn->loop, time.likely) : time.likely, time.least, time.most);
    elapsed += total(time, loop);
    turns.done(*turn, std::nullopt);
    if (point.skip_reason.empty()) loops.emplace(turn->index, loop);
  }
  return loops;
}

std::optional<std::string> no_curve_warning(const Plan& plan, const std::set<int>& waiting,
                                            units::Seconds budget) {
  const std::set<int> of_curves = points_of_curves(plan);
  if (of_curves.empty() || !std::ranges::includes(waiting, of_curves)) return std::nullopt;
  return fmt::format(
      "--budget {} left no time for any of the {} points that show how the machine scales; give it "
      "more, or measure them with --resume",
      units::format(budget), of_curves.size());
}

}  // namespace isoscale::runner
