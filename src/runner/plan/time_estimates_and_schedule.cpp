// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/plan/time_estimates_and_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <utility>

#include "runner/plan/step_loop.hpp"
#include "units/quantity_text.hpp"
#include "workloads/registry_and_mesh_choice.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::runner::plan {
namespace {

using program::Precision;

// The share of a case's budget that traced plays take; see play_case().
constexpr double traced_plays_share = 0.3;
constexpr double case_seconds = 0.01;  // seconds to prepare a case and compare its results
constexpr int warm_plays = 2, fewest_case_plays = 6;  // number of plays of a case, see play_case()
// The timed plays of all cases together are assumed to take as long as six plays of each case,
// limited to between quick_share and slow_share of --max-time.
constexpr double quick_share = 0.3, slow_share = 0.5;
constexpr int checked_steps = 2;  // one step before the loop and one after it, see StepCheck
/// The half-width of the median's confidence interval for n normally distributed values, in units
/// of their standard deviation / sqrt(n). 2.81 is for a confidence of 99.5%, since the interval is
/// checked several times; 1.2533 is the standard error of the median over that of the mean.
constexpr double units_of_median = 2.81 * 1.2533;
constexpr std::size_t most_steps = 100'000;  // limit on the steps that loop_time() simulates

struct Rates {
  double bandwidth;     ///< bytes per second that a rank sends
  double fill;          ///< bytes per second at which a rank fills its memory
  double communicator;  ///< seconds to create a communicator
  double twin;          ///< seconds to verify the twin, a small version of the point
  /// Seconds for each rank of the point, added to `communicator` and to `twin`.
  double per_rank = 0.02;
};

Rates rates_of(std::string_view device) {
  if (device == "cuda") return {.bandwidth = 10e9, .fill = 100e9, .communicator = 1, .twin = 5};
  return {.bandwidth = 3e9, .fill = 1e9, .communicator = 0.02, .twin = 0.1};
}

/// Returns the expected FLOP/s. `half` is the rate of a GPU in f16 and bf16; 0 if it is not known.
double flops_of(std::string_view device, double half, Precision precision, int blas_threads) {
  if (device != "cuda") return (precision == Precision::f64 ? 50e9 : 100e9) * blas_threads;
  if (half <= 0) half = 100e12;
  switch (precision) {
    case Precision::fp8:
    case Precision::f16:
    case Precision::bf16:
      return half;
    case Precision::tf32:
      return half / 2;
    case Precision::f32:
    case Precision::f64:
      break;
  }
  return half / 10;
}

constexpr std::size_t ends = 2;  // the first and the last point of a curve

/// The points of an experiment that are to be measured. most_telling_first() has already added the
/// first `taken` of them to its result.
struct Curve {
  const settings::Experiment* experiment = nullptr;
  std::vector<int> points;  ///< indices in the plan, in the order of ends_then_middles()
  std::size_t taken = 0;
};

std::vector<Curve> curves_of(const Plan& plan) {
  std::vector<Curve> curves;
  for (const PlannedPoint& point : plan.points) {
    if (!point.skip_reason.empty()) continue;
    if (curves.empty() || curves.back().experiment != point.experiment) {
      curves.push_back({.experiment = point.experiment, .points = {}});
    }
    curves.back().points.push_back(point.index);  // plan.points has them by ascending rank count
  }
  for (Curve& curve : curves) {
    std::vector<int> sorted;
    for (const std::size_t at : ends_then_middles(curve.points.size())) {
      sorted.push_back(curve.points[at]);
    }
    curve.points = std::move(sorted);
  }
  return curves;
}

/// True if the curve shows how a workload scales. The curves of micro-benchmarks do not.
bool scales(const Curve& curve) {
  return !workloads::find_workload(curve.experiment->workload).is_bench();
}

/// This share of the budget is kept for what a run writes at its end.
constexpr double share_of_end = 0.02;

/// Returns the one loop time to give to all `points`, so that together they take no longer than
/// `left`. The loop of a point takes this time, but never less than its `least` or more than its
/// `most`. So extra time first lengthens the shortest loops. If the points take `left` or longer
/// even with their `least` loops, the result is the smallest `least`, which lengthens no loop.
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
  // The total time grows with the loop time, linearly between neighbouring entries of `levels`.
  units::Seconds low = levels.front();
  if (cost(low) >= left) return low;
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

/// Returns the time that a point took divided by its estimated time. If it took less than
/// estimated, the reason may be that its loop ended early, and not that the point is fast. So the
/// time is then divided by the estimate with the shortest loop, and the result is at most 1.
double pace(const PointTime& thought, units::Seconds loop, units::Seconds time) {
  const units::Seconds whole = total(thought, loop);
  if (time >= whole) return time / whole;
  return std::min(1.0, time / total(thought, thought.least));
}

}  // namespace

units::Seconds total(const PointTime& time, units::Seconds loop) {
  return time.set_up + time.verification + time.stretch * std::max(loop, time.least) + time.after;
}

PointTime at_pace(const PointTime& time, double factor, units::Seconds max_time) {
  PointTime result = time;
  result.set_up = factor * time.set_up;
  result.verification = factor * time.verification;
  result.after = factor * time.after;
  result.least = factor * time.least;
  result.likely = std::max(factor * time.likely, result.least);
  result.most = std::max(max_time, result.likely);
  return result;
}

units::Seconds loop_time(units::Seconds step, const settings::RunConfig& config) {
  const double spread = units_of_median * assumed_scatter;
  const Effort effort{
      .precision = config.precision,
      .max_time = config.max_time,
      .trace_steps = config.trace_steps,
      .half_width =
          [&](std::span<const double> samples, double) {
            if (samples.size() < least_counted) return std::optional<double>{};
            return std::optional{spread / std::sqrt(samples.size())};
          },
      .nominal_confidence = [](int, double) { return statistics::plain_confidence; },
      .last_change = [](std::span<const double>, double) { return 0; }};
  StepLoop loop{effort};
  units::Seconds elapsed{0};
  while (loop.end().empty()) {
    if (loop.steps() > most_steps) return std::max(config.max_time, elapsed);
    const Block block = loop.next();
    elapsed += static_cast<double>(block.steps) * step;
    loop.played(block, std::vector<double>(block.steps, step.value()), elapsed);
  }
  return elapsed;
}

PointTime estimate(const PlannedPoint& point, const settings::RunConfig& config,
                   std::string_view device) {
  if (!point.skip_reason.empty()) return {};
  const Rates rates = rates_of(device);
  const Load& load = point.load;
  const auto communicators = static_cast<double>(point.sent_by_axes.size());
  const auto memory = static_cast<double>(point.memory_per_rank.value_or(units::Bytes{0}).value());
  const double for_ranks = rates.per_rank * point.ranks;
  PointTime time;
  time.set_up = units::Seconds{
      load.sessions * (communicators * (rates.communicator + for_ranks) + memory / rates.fill)};
  if (point.workload->twin != nullptr) {
    // A twin in a narrow type, or with gradients in one, is played once more, in f32.
    using program::Precision, workloads::stack::GradientType, workloads::stack::TrainingOptions;
    const Precision precision = point.request.precision;
    const bool is_wide =
        (precision == Precision::f64 || precision == Precision::f32) &&
        workloads::stack::option_of(point.request, "grad_dtype", &TrainingOptions::grad_dtype) ==
            GradientType::same;
    const int twins = is_wide ? 1 : 2;
    time.verification = units::Seconds{twins * (rates.twin + for_ranks)};
  }
  if (config.soak && !point.workload->is_bench()) {
    time.verification = time.verification + *config.soak;
  }
  const units::Seconds step = load.step.value_or(
      units::Seconds{load.flop / flops_of(device, load.half_precision_rate, point.request.precision,
                                          config.blas_threads) +
                     static_cast<double>(load.sent.value()) / rates.bandwidth});
  if (point.workload->is_bench()) {
    const units::Seconds cases{case_seconds * load.cases};
    time.likely = 1.0 * warm_plays * step + cases +
                  std::clamp(1.0 * fewest_case_plays * step, quick_share * config.max_time,
                             slow_share * config.max_time);
    time.least = std::min(time.likely, 1.0 * (warm_plays + fewest_case_plays) * step + cases);
    time.most = std::max(config.max_time, time.likely);
    time.stretch = 1 + traced_plays_share;
    return time;
  }
  time.verification += 1.0 * checked_steps * step;
  if (config.trace_steps > 0) time.after = 1.0 * solo_plays(step, config.max_time) * step;
  time.likely = loop_time(step, config);
  time.least = std::min(1.0 * fewest_steps * step, time.likely);
  time.most = std::max(config.max_time, time.likely);
  return time;
}

std::vector<std::size_t> ends_then_middles(std::size_t count) {
  if (count < 2) return std::vector<std::size_t>(count, 0);
  std::vector<std::size_t> order{0, count - 1};
  std::deque<std::pair<std::size_t, std::size_t>> gaps{{0, count - 1}};
  while (!gaps.empty()) {
    const auto [low, high] = gaps.front();
    gaps.pop_front();
    if (high - low < 2) continue;
    const std::size_t middle = low + (high - low) / 2;
    order.push_back(middle);
    gaps.emplace_back(low, middle);
    gaps.emplace_back(middle, high);
  }
  return order;
}

std::vector<int> most_telling_first(const Plan& plan) {
  std::vector<int> order;
  for (const PlannedPoint& point : plan.points) {
    if (!point.skip_reason.empty()) order.push_back(point.index);
  }
  std::vector<Curve> curves = curves_of(plan);
  const auto take = [&](Curve& curve) {
    if (curve.taken < curve.points.size()) order.push_back(curve.points[curve.taken++]);
  };
  const auto take_ends = [&](Curve& curve) {
    while (curve.taken < std::min(ends, curve.points.size())) take(curve);
  };
  if (const auto first = std::ranges::find_if(curves, scales); first != curves.end()) {
    take_ends(*first);
  }
  for (Curve& curve : curves) {
    if (curve.experiment->workload == "calibrate") take_ends(curve);
  }
  for (std::size_t round = 0; order.size() < plan.points.size(); ++round) {
    for (Curve& curve : curves) {
      if (curve.taken <= round) take(curve);
    }
  }
  return order;
}

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

Schedule::Schedule(const Plan& plan, const settings::RunConfig& config, std::string_view device,
                   std::set<int> wanted, const std::set<int>& last)
    : plan_(&plan), config_(&config), device_(device), waiting_(std::move(wanted)) {
  if (config.budget) {
    order_ = most_telling_first(plan);
  } else {
    for (const PlannedPoint& point : plan.points) order_.push_back(point.index);
  }
  std::ranges::stable_partition(order_, [&](int index) { return !last.contains(index); });
}

PointTime Schedule::expected(const PlannedPoint& point) const {
  const PointTime time = estimate(point, *config_, device_);
  const auto found = paces_.find(point.workload->name);
  if (found == paces_.end()) return time;
  const std::vector<double>& paces = found->second;
  const double mean =
      std::accumulate(paces.begin(), paces.end(), 0.0) / static_cast<double>(paces.size());
  return at_pace(time, mean, config_->max_time);
}

std::optional<Turn> Schedule::next(units::Seconds elapsed) const {
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
  units::Seconds spare = left;  // time that is left if the loops of all points take their `most`
  for (const PointTime& time : times) spare -= total(time, time.most);
  return Turn{.index = waiting[portion->at],
              .loop = std::min(portion->loop, asked),
              .most = std::min(portion->loop + std::max(spare, units::Seconds{0}), most)};
}

void Schedule::done(const Turn& turn, std::optional<units::Seconds> time) {
  waiting_.erase(turn.index);
  const PlannedPoint& point = plan_->points[static_cast<std::size_t>(turn.index)];
  if (!point.skip_reason.empty()) return;
  if (time) {
    paces_[point.workload->name].push_back(
        pace(estimate(point, *config_, device_), turn.loop, *time));
  }
  if (turn.loop >= config_->max_time) return;
  ++shortened_;
  shortest_ = std::min(shortest_.value_or(turn.loop), turn.loop);
}

std::map<int, units::Seconds> expected_loops(const Plan& plan, const settings::RunConfig& config,
                                             std::string_view device) {
  std::set<int> all;
  for (const PlannedPoint& point : plan.points) all.insert(point.index);
  Schedule schedule{plan, config, device, all};
  std::map<int, units::Seconds> loops;
  units::Seconds elapsed{0};
  while (const auto turn = schedule.next(elapsed)) {
    const PlannedPoint& point = plan.points[static_cast<std::size_t>(turn->index)];
    const PointTime time = estimate(point, config, device);
    const units::Seconds loop = std::clamp(
        config.budget ? std::min(turn->loop, time.likely) : time.likely, time.least, time.most);
    elapsed += total(time, loop);
    schedule.done(*turn, std::nullopt);
    if (point.skip_reason.empty()) loops.emplace(turn->index, loop);
  }
  return loops;
}

std::optional<std::string> no_curve_warning(const Plan& plan, const std::set<int>& waiting,
                                            units::Seconds budget) {
  int of_curves = 0;
  for (const PlannedPoint& point : plan.points) {
    if (!point.skip_reason.empty() || point.workload->is_bench()) continue;
    if (!waiting.contains(point.index)) return std::nullopt;
    ++of_curves;
  }
  if (of_curves == 0) return std::nullopt;
  return fmt::format(
      "--budget {} left no time for any of the {} points that show how the machine scales; give it "
      "more, or measure them with --resume",
      units::format(budget), of_curves);
}

}  // namespace isoscale::runner::plan
