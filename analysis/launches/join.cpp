// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/launches/join.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "analysis/curves.hpp"
#include "analysis/labels.hpp"
#include "analysis/launches/apart.hpp"
#include "analysis/launches/settings.hpp"
#include "statistics/estimate.hpp"

namespace isoscale::analysis {
namespace {

using results::PointData;

/// "" when it counts.
std::string why_left_out(const PointReport& point, Counted counted) {
  const PointData& data = *point.data;
  // A point that does not verify has rates only where such points are to be shown.
  const bool shown = counted == Counted::all && data.verified == false && point.throughput;
  if (shown) return "";
  if (data.status != results::PointStatus::ok) {
    return fmt::format("{}: {}", results::name(data.status),
                       data.reason.empty() ? "no reason was recorded" : data.reason);
  }
  if (data.verified == false) return "its results do not verify";
  const std::vector<std::string> labels = unsound(data.labels);
  if (counted == Counted::sound && !labels.empty())
    return fmt::format("{}", fmt::join(labels, ", "));
  return point.throughput && point.step_time->median > 0 ? "" : "it has no step times";
}

/// The launches that a joined curve is made of, before anything is computed from them.
struct Gathered {
  Experiment experiment;
  Machine machine;
  std::vector<std::vector<LaunchPoint>> points;  ///< one entry a rank count
  std::vector<LeftOut> left_out;
};

std::vector<LaunchPoint>* find_ranks(Gathered& into, int ranks) {
  const auto found = std::ranges::find_if(into.points, [ranks](const auto& launches) {
    return launches.front().point->data->ranks == ranks;
  });
  return found == into.points.end() ? nullptr : &*found;
}

/// How well the points of a curve go with those gathered.
struct Fit {
  bool possible = true;
  int same_points = 0;
  int axes = std::numeric_limits<int>::max();  ///< that differ to the nearest point

  [[nodiscard]] bool is_better_than(const Fit& other) const {
    if (same_points != other.same_points) return same_points > other.same_points;
    return axes < other.axes;
  }
};

int axes_between(const mesh::Shape& a, const mesh::Shape& b) {
  return static_cast<int>(std::ranges::count_if(
      mesh::all_axes, [&](const mesh::Axis axis) { return a[axis] != b[axis]; }));
}

Fit fit_of(const Gathered& into, std::span<const LaunchPoint> points) {
  Fit fit;
  for (const LaunchPoint& point : points) {
    for (const auto& launches : into.points) {
      const LaunchPoint& known = launches.front();
      fit.axes = std::min(fit.axes, axes_between(known.point->data->mesh, point.point->data->mesh));
      if (known.point->data->ranks != point.point->data->ranks) continue;
      // The same launch may have measured the same twice, in two experiments.
      const bool again =
          std::ranges::find(launches, point.run, &LaunchPoint::run) != launches.end();
      if (again || !is_same_point(*known.point, *point.point)) fit.possible = false;
      ++fit.same_points;
    }
  }
  return fit;
}

Gathered& home_of(std::vector<Gathered>& all, const Gathered& curve,
                  std::span<const LaunchPoint> points) {
  Gathered* best = nullptr;
  Fit best_fit;
  for (Gathered& at : all) {
    if (at.machine != curve.machine || !are_alike(at.experiment, curve.experiment)) continue;
    const Fit fit = fit_of(at, points);
    if (!fit.possible || (best != nullptr && !fit.is_better_than(best_fit))) continue;
    best = &at;
    best_fit = fit;
  }
  return best == nullptr ? all.emplace_back(curve) : *best;
}

void gather(const RunReport& run, const Curve& curve, Counted counting,
            std::vector<Gathered>& all) {
  std::vector<LaunchPoint> counted;
  std::vector<LeftOut> left_out;
  for (const PointReport& point : curve.points) {
    const LaunchPoint at{.run = &run, .point = &point};
    if (std::string reason = why_left_out(point, counting); !reason.empty()) {
      left_out.push_back({.at = at, .reason = std::move(reason)});
    } else {
      counted.push_back(at);
    }
  }
  Gathered empty{.experiment = experiment_of(curve),
                 .machine = machine_of(*run.data),
                 .points = {},
                 .left_out = {}};
  empty.experiment.settings = settings_of(*run.data);
  Gathered& into = home_of(all, empty, counted);
  // The first curve of an experiment may have been skipped, and not know the model's numbers.
  if (into.experiment.numbers.empty()) into.experiment = empty.experiment;
  for (const LaunchPoint& point : counted) {
    if (auto* const launches = find_ranks(into, point.point->data->ranks); launches != nullptr) {
      launches->push_back(point);
    } else {
      into.points.push_back({point});
    }
  }
  for (LeftOut& point : left_out) into.left_out.push_back(std::move(point));
}

/// Launches of few steps do not count beside those of enough when a curve is shown.
void leave_out_few_steps(Gathered& from) {
  const auto is_few = [](const LaunchPoint& at) { return has_label(at.point->labels, few_steps); };
  for (auto& launches : from.points) {
    if (std::ranges::all_of(launches, is_few)) continue;
    for (const LaunchPoint& at : launches) {
      if (!is_few(at)) continue;
      from.left_out.push_back({.at = at,
                               .reason = fmt::format("few-steps: {} of the {} that it takes",
                                                     at.point->steps, fewest_steps)});
    }
    std::erase_if(launches, is_few);
  }
}

/// A point over its launches: all that can be is the typical launch's.
PointReport join_point(std::span<const LaunchPoint> launches, int most_of_launch,
                       std::span<const RunReport> reports) {
  std::vector<double> medians;
  for (const LaunchPoint& at : launches) medians.push_back(at.point->step_time->median);
  const std::optional<Estimate> time = over_launches(medians);
  const auto typical = std::ranges::min_element(
      medians, {}, [&](double median) { return std::abs(median - time->median); });
  const LaunchPoint& at_typical = launches[static_cast<std::size_t>(typical - medians.begin())];
  PointReport joined = *at_typical.point;
  joined.launch = static_cast<std::size_t>(at_typical.run - reports.data()) + 1;
  joined.step_time = time;
  joined.steps = 0;
  for (const LaunchPoint& at : launches) {
    joined.steps += at.point->steps;
    const bool few = has_label(at.point->labels, few_steps);
    if (few && !has_label(joined.labels, few_steps)) joined.labels.emplace_back(few_steps);
  }
  joined.throughput = joined.data->work_per_step / time->median;
  if (joined.flop_per_step) {
    joined.flops_per_rank = *joined.flop_per_step / joined.data->ranks / time->median;
  }
  // What its own launch's baseline told of it.
  joined.speedup.reset();
  joined.efficiency.reset();
  joined.speedup_interval.reset();
  joined.causes.pop = pop(*joined.data, joined.breakdown, std::nullopt);
  joined.causes.waterfall.reset();
  joined.causes.serial_fraction.reset();
  // A launch of fewer ranks than others had on a node fills none.
  if (joined.nodes) {
    joined.nodes->fills_node = joined.nodes->fills_node && joined.nodes->most == most_of_launch;
  }
  return joined;
}

JoinedCurve join_curve(Gathered from, const ReportOptions& options,
                       std::span<const RunReport> reports, Counted counted) {
  if (counted == Counted::sound) leave_out_few_steps(from);
  std::ranges::stable_sort(
      from.points, {}, [](const auto& launches) { return launches.front().point->data->ranks; });
  int most_of_launch = 0;
  for (const auto& launches : from.points) {
    for (const LaunchPoint& at : launches) {
      if (at.point->nodes) {
        most_of_launch = std::max(most_of_launch, at.point->nodes->most_of_launch);
      }
    }
  }
  JoinedCurve joined;
  const auto device = from.points.empty() ? from.left_out.front().at : from.points.front().front();
  joined.fingerprint = fingerprint(from.experiment, device.run->data->device);
  for (const auto& launches : from.points) {
    joined.curve.points.push_back(join_point(launches, most_of_launch, reports));
  }
  set_against_baseline(joined.curve, options);
  joined.experiment = std::move(from.experiment);
  joined.machine = std::move(from.machine);
  joined.launches = std::move(from.points);
  joined.left_out = std::move(from.left_out);
  return joined;
}

}  // namespace

std::optional<double> spread_of(const PointReport& joined) {
  return joined.step_time ? launch_spread(*joined.step_time) : std::nullopt;
}

Joined join(std::span<const RunReport> reports, const ReportOptions& options, Counted counted) {
  std::vector<Gathered> all;
  for (const RunReport& report : reports) {
    for (const Curve& curve : report.curves) gather(report, curve, counted, all);
  }
  std::vector<Experiment> experiments;
  for (const Gathered& at : all) experiments.push_back(at.experiment);
  Joined joined;
  for (Gathered& at : all)
    joined.curves.push_back(join_curve(std::move(at), options, reports, counted));
  const std::vector<std::string> names = titles(experiments);
  for (std::size_t i = 0; i < names.size(); ++i) joined.curves[i].curve.title = names[i];
  tell_apart(joined.curves, reports);
  return joined;
}

std::optional<JoinedPlace> place_of(const Joined& joined, const PointReport& point) {
  for (const JoinedCurve& curve : joined.curves) {
    for (const LeftOut& at : curve.left_out) {
      if (at.at.point == &point) return JoinedPlace{.curve = &curve, .left_out = at.reason};
    }
    for (std::size_t i = 0; i < curve.launches.size(); ++i) {
      if (std::ranges::find(curve.launches[i], &point, &LaunchPoint::point) ==
          curve.launches[i].end()) {
        continue;
      }
      return JoinedPlace{.curve = &curve,
                         .joined = &curve.curve.points[i],
                         .launches = curve.launches[i].size(),
                         .left_out = ""};
    }
  }
  return std::nullopt;
}

}  // namespace isoscale::analysis
