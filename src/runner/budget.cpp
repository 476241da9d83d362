// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/budget.hpp"

#include <algorithm>
#include <utility>

#include "runner/order.hpp"

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
  return count == 0 ? time : slower(time, sum / count);
}

std::optional<Turn> Turns::next(units::Seconds elapsed) const {
  std::vector<int> waiting;
  std::ranges::copy_if(order_, std::back_inserter(waiting),
                       [&](int index) { return waiting_.contains(index); });
  if (waiting.empty()) return std::nullopt;
  if (!config_->budget) return Turn{.index = waiting.front(), .loop = config_->max_time};
  std::vector<PointTime> times;
  for (const int index : waiting) {
    times.push_back(expected(plan_->points[static_cast<std::size_t>(index)]));
  }
  const auto portion = next_portion(times, (1 - share_of_end) * *config_->budget - elapsed);
  if (!portion) return std::nullopt;
  return Turn{.index = waiting[portion->at], .loop = std::min(portion->loop, config_->max_time)};
}

void Turns::done(const Turn& turn, units::Seconds time) {
  waiting_.erase(turn.index);
  const PlannedPoint& point = plan_->points[static_cast<std::size_t>(turn.index)];
  if (!point.skip_reason.empty()) return;
  const units::Seconds thought = total(estimate(point, *config_, device_), turn.loop);
  experience_.push_back(
      {.workload = point.workload->name, .factor = std::max(1.0, time / thought)});
  if (turn.loop >= config_->max_time) return;
  ++shortened_;
  shortest_ = std::min(shortest_.value_or(turn.loop), turn.loop);
}

}  // namespace isoscale::runner
