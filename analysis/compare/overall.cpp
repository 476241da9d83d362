// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/overall.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/differences.hpp"
#include "analysis/point_facts.hpp"
#include "analysis/render/text.hpp"
#include "analysis/statistics/welch.hpp"

namespace isoscale::analysis {
namespace {

/// How far each launch of one side is from the side's own mean, point by point, as logarithms.
using Residuals = std::map<const RunReport*, std::vector<double>>;

double mean(const std::vector<double>& of) {
  double sum = 0;
  for (const double value : of) sum += value;
  return sum / static_cast<double>(of.size());
}

/// The mean logarithm of a point's throughputs; adds each launch's distance from it to `residuals`.
double mean_log(std::span<const LaunchPoint> launches, Residuals& residuals) {
  std::vector<double> logs;
  for (const LaunchPoint& at : launches) logs.push_back(std::log(*at.point->throughput));
  const double middle = mean(logs);
  for (std::size_t i = 0; i < logs.size(); ++i) {
    residuals[launches[i].run].push_back(logs[i] - middle);
  }
  return middle;
}

/// The side's mean over points with the scatter of its launches, each of which counts once.
std::optional<Mean> over_launches(double value, const Residuals& residuals) {
  if (residuals.size() < least_launches) return std::nullopt;
  std::vector<double> of_launches;
  for (const auto& [run, of_points] : residuals) of_launches.push_back(mean(of_points));
  std::optional<Mean> result = mean_of(of_launches);
  if (result) result->value = value;
  return result;
}

/// The cause that explains most of the change of the steps, weighing points alike.
void find_cause(const std::vector<const Difference*>& points, Overall& result) {
  double change = 0;
  std::map<std::string, double> causes;
  for (const Difference* const at : points) {
    const Why& why = at->why;
    if (!why.no_step.empty() || !(why.step_first > 0)) return;
    change += (why.step_here - why.step_first) / why.step_first;
    for (const CausePart& part : why.step) {
      if (part.cause == untraced_part || part.cause == other_causes) continue;
      causes[part.cause] += part.value / why.step_first;
    }
  }
  for (const auto& [cause, value] : causes) {
    const double share = value / change;
    if (std::isfinite(share) && share > result.cause_share) {
      result.cause = cause;
      result.cause_share = share;
    }
  }
}

bool is_marked(const Comparison& of, const Difference& at) {
  const ComparedCurve& curve = of.curves[at.curve];
  return !marks_of(of, at.curve, at.side, at.ranks).empty() ||
         !is_scaling_result(point_of(curve.sides[at.side]->curve, at.ranks)->labels);
}

/// "12%", below 10% with one decimal.
std::string share_text(double share) {
  constexpr double hundred = 100, few = 0.0995;
  return fmt::format("{:.{}f}%", hundred * std::abs(share), std::abs(share) < few ? 1 : 0);
}

/// A ratio in words: "12% slower", "3.1% faster", "2.4x as fast".
std::string speed_text(double ratio) {
  constexpr double twice = 2;
  if (ratio >= twice) return fmt::format("{:.1f}x as fast", ratio);
  if (share_text(ratio - 1) == share_text(0)) return "as fast";
  return fmt::format("{} {}", share_text(ratio - 1), ratio < 1 ? "slower" : "faster");
}

/// "between 9% and 15%"; with words where the ends are not of one kind.
std::string between_text(const Located& at) {
  constexpr double twice = 2;
  const double lower = *at.lower, upper = *at.upper;
  if (upper < 1)
    return fmt::format("between {} and {}", share_text(1 - upper), share_text(1 - lower));
  if (lower > 1 && upper < twice) {
    return fmt::format("between {} and {}", share_text(lower - 1), share_text(upper - 1));
  }
  return fmt::format("between {} and {}", speed_text(lower), speed_text(upper));
}

std::string cause_text(const Overall& at) {
  constexpr double mostly = 0.5, worth_saying = 0.2;
  if (at.cause_share < worth_saying) return "";
  if (at.cause_share > mostly) return "; mostly " + escape(at.cause);
  return fmt::format("; largest cause {}, {} of it", escape(at.cause), share_text(at.cause_share));
}

}  // namespace

std::vector<Overall> overall(const Comparison& of) {
  std::vector<Overall> result;
  for (std::size_t s = 1; s < of.sides.size(); ++s) {
    std::vector<const Difference*> points;
    for (const Difference& at : of.differences) {
      if (at.side == s) points.push_back(&at);
    }
    Overall& at = result.emplace_back(Overall{.side = s, .compared = points.size()});
    const auto has_interval = [](const Difference* point) { return point->log_ratio.has_value(); };
    if (std::ranges::any_of(points, has_interval)) std::erase_if(points, std::not_fn(has_interval));
    at.points = points.size();
    if (points.empty()) continue;
    Residuals first, here;
    std::vector<double> logs_first, logs_here;
    for (const Difference* const point : points) {
      const auto& sides = of.curves[point->curve].sides;
      const auto launches = [&](std::size_t side) {
        return point_launches(*sides[side], point->ranks, std::nullopt).launches;
      };
      logs_first.push_back(mean_log(launches(0), first));
      logs_here.push_back(mean_log(launches(s), here));
      at.marked += is_marked(of, *point) ? 1 : 0;
    }
    const double of_first = mean(logs_first), of_here = mean(logs_here);
    at.throughput.value = std::exp(of_here - of_first);
    const auto mean_first = over_launches(of_first, first),
               mean_here = over_launches(of_here, here);
    if (has_interval(points.front()) && mean_first && mean_here) {
      const Located logs = located(difference(*mean_first, *mean_here));
      at.throughput.lower = std::exp(*logs.lower);
      at.throughput.upper = std::exp(*logs.upper);
    }
    find_cause(points, at);
  }
  return result;
}

std::string overall_sentence(const Comparison& of, const Overall& at) {
  const std::string &first = of.sides.front().name, &side = of.sides[at.side].name;
  if (at.points == 0) return fmt::format("{} and {} have no point that was compared", first, side);
  const std::string points =
      at.compared == 1 ? "at the one point compared"
      : at.points == at.compared
          ? fmt::format("over {} points", at.compared)
          : fmt::format("over {} of {} points, those of {} launches a side and more", at.points,
                        at.compared, least_launches);
  const std::string marked =
      at.marked == 0 ? "" : fmt::format("; {} of them labelled or unlike", at.marked);
  const std::string speed = speed_text(at.throughput.value);
  const std::string_view than = speed.ends_with("as fast") ? "as" : "than";
  if (!at.throughput.lower) {
    return fmt::format(
        "{} is {} {} {} {}, as measured; a claim needs at least {} launches a side{}", side, speed,
        than, first, points, least_launches, marked);
  }
  if (!is_established(at.throughput, 1)) {
    return fmt::format("no difference is shown {}: {} is {} {} {} as measured, {}{}", points, side,
                       speed, than, first, between_text(at.throughput), marked);
  }
  return fmt::format("{} is {} {} {} {}, {}{}{}", side, speed, than, first, points,
                     between_text(at.throughput), cause_text(at), marked);
}

}  // namespace isoscale::analysis
