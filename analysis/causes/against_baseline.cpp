// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/causes/against_baseline.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "analysis/labels.hpp"

namespace isoscale::analysis {
namespace {

/// One side of a ratio's interval, as a logarithm, from those of both times.
double in_quadrature(double of_point, double of_baseline) {
  return std::hypot(std::max(0.0, std::log(of_point)), std::max(0.0, std::log(of_baseline)));
}

/// The baseline against itself is 1, however little is known of it.
ScalingPoint scaling_point(const PointReport& point, const PointReport& baseline) {
  ScalingPoint result{.p = static_cast<double>(point.data->ranks) / baseline.data->ranks,
                      .speedup = *point.throughput / *baseline.throughput,
                      .lower = std::nullopt,
                      .upper = std::nullopt};
  if (&point == &baseline) {
    result.lower = result.upper = result.speedup;
    return result;
  }
  const Estimate& mine = *point.step_time;
  const Estimate& base = *baseline.step_time;
  if (mine.lower && mine.upper && base.lower && base.upper) {
    const double below = in_quadrature(*mine.upper / mine.median, base.median / *base.lower);
    const double above = in_quadrature(mine.median / *mine.lower, *base.upper / base.median);
    result.lower = result.speedup * std::exp(-below);
    result.upper = result.speedup * std::exp(above);
  }
  return result;
}

/// Of the speed-up as reports give it, where the baseline counts as `worth`: its rank count, or one
/// node.
std::optional<Located> interval_of(const ScalingPoint& at, int worth) {
  if (!at.lower || !at.upper) return std::nullopt;
  return Located{
      .value = at.speedup * worth, .lower = *at.lower * worth, .upper = *at.upper * worth};
}

/// The serial fraction of a point, where it is one: between 0 and 1, with an interval narrower
/// than that.
std::optional<Located> telling_fraction(const ScalingPoint& at) {
  constexpr double rounding = 1e-9;
  const std::optional<Located> fraction = karp_flatt(at);
  if (!fraction || !fraction->lower || !fraction->upper) return std::nullopt;
  const bool is_share = fraction->value >= -rounding && fraction->value <= 1 + rounding;
  return is_share && *fraction->upper - *fraction->lower < 1 ? fraction : std::nullopt;
}

}  // namespace

std::optional<StepLoss> step_loss(const PointReport& point) {
  if (!point.throughput || !point.step_time || !point.causes.costs || !point.traced_step) {
    return std::nullopt;
  }
  return StepLoss{.step = point.step_time->median,
                  .traced = *point.traced_step,
                  .slowest = point.breakdown.slowest_step,
                  .work = point.data->work_per_step,
                  .ranks = point.data->ranks,
                  .costs = *point.causes.costs};
}

void add_losses(Curve& curve, const PointReport& base) {
  const std::optional<StepLoss> ideal = step_loss(base);
  const std::optional<UsefulWork> useful = useful_work(*base.data, base.breakdown);
  std::vector<ScalingPoint> scaling;
  const bool strong = base.data->scaling == "strong";
  for (PointReport& point : curve.points) {
    if (!point.throughput || !point.step_time) continue;
    const ScalingPoint at = scaling_point(point, base);
    if (&point != &base) {
      point.speedup_interval = interval_of(at, curve.per_node ? 1 : *curve.baseline);
    }
    point.causes.pop = pop(*point.data, point.breakdown, useful);
    // Without an interval it is not to be trusted, and not shown.
    if (is_scaling_result(point.labels)) {
      scaling.push_back(at);
      if (strong && at.lower) point.causes.serial_fraction = telling_fraction(at);
    }
    const std::optional<StepLoss> loss = step_loss(point);
    if (loss && ideal && point.data->ranks != base.data->ranks) {
      point.causes.waterfall = waterfall(*loss, *ideal);
      if (has_label(point.labels, few_steps) || has_label(base.labels, few_steps)) {
        point.causes.waterfall->explains = false;
      }
    }
  }
  if (strong) curve.laws.amdahl = amdahl(scaling);
  if (!strong) curve.laws.gustafson = gustafson(scaling);
  curve.laws.usl = usl(scaling);
}

}  // namespace isoscale::analysis
