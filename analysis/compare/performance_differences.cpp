// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/comparison_internals.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "analysis/curves_and_baselines.hpp"
#include "results/records/point_facts.hpp"
#include "statistics/estimate.hpp"

namespace isoscale::analysis::compare {
namespace {

std::vector<double> log_throughputs(std::span<const merge::LaunchPoint> launches) {
  std::vector<double> logs;
  for (const merge::LaunchPoint& at : launches) logs.push_back(std::log(*at.point->throughput));
  return logs;
}

/// Returns the efficiency in each launch that measured both the point and the point's baseline.
std::vector<double> paired_efficiencies(const PointLaunches& of) {
  std::vector<double> efficiencies;
  for (const merge::LaunchPoint& at : of.launches) {
    const auto base = std::ranges::find(of.of_baseline, at.run, &merge::LaunchPoint::run);
    if (base == of.of_baseline.end()) continue;
    efficiencies.push_back(*at.point->throughput / *base->point->throughput *
                           base->point->data->ranks / at.point->data->ranks);
  }
  return efficiencies;
}

/// Returns the mean logarithm of the launches' throughputs; absent below 3 launches.
std::optional<statistics::Mean> log_throughput(std::span<const merge::LaunchPoint> launches) {
  if (launches.size() < least_launches) return std::nullopt;
  return statistics::mean_of(log_throughputs(launches));
}

/// Returns the efficiency of a point over its launches; absent if there are too few launches. If at
/// least 3 launches measured both the point and its baseline, it is the mean of the efficiencies of
/// these launches, because effects that a launch has on both points cancel. Otherwise it is
/// computed from the mean logarithms of all launches, as if the launches of the baseline were
/// independent of the others.
std::optional<statistics::Mean> efficiency_of(const PointLaunches& at) {
  const std::vector<double> paired = paired_efficiencies(at);
  if (paired.size() >= least_launches) return statistics::mean_of(paired);
  const std::optional<statistics::Mean> base = log_throughput(at.of_baseline);
  const std::optional<statistics::Mean> point = log_throughput(at.launches);
  if (!base || !point) return std::nullopt;
  statistics::Mean ratio = difference(*base, *point);
  ratio.value += std::log(static_cast<double>(at.baseline->data->ranks) / at.point->data->ranks);
  return exponential(ratio);
}

std::optional<statistics::Located> efficiency_difference(const PointLaunches& first,
                                                         const PointLaunches& here) {
  const auto &a = first.point->efficiency, &b = here.point->efficiency;
  if (!a || !b || first.point == first.baseline) return std::nullopt;
  const auto of_first = efficiency_of(first), of_here = efficiency_of(here);
  statistics::Located result;
  if (of_first && of_here) result = located(difference(*of_first, *of_here));
  result.value = *b - *a;
  return result;
}

/// Sets the interval of a ratio from the interval of its logarithm.
void set_interval(statistics::Located& ratio, const statistics::Mean& logarithm) {
  const statistics::Located logs = located(logarithm);
  ratio.lower = std::exp(*logs.lower);
  ratio.upper = std::exp(*logs.upper);
}

Verdict without_gate(const statistics::Located& throughput) {
  if (!throughput.lower) return Verdict::one_launch;
  if (!is_established(throughput, 1)) return Verdict::no_difference;
  return throughput.value < 1 ? Verdict::slower : Verdict::faster;
}

/// Causes below 0.5 percentage points of efficiency are not shown by name.
constexpr double least_shown = 0.005;

bool has_cause(const efficiency::Waterfall& of, std::string_view cause) {
  return std::ranges::find(of.lost, cause, &efficiency::LostTime::cause) != of.lost.end();
}

bool is_gemm(std::string_view cause) { return cause.starts_with("GEMM"); }
bool is_waiting(std::string_view cause) {
  return cause == "imbalance" || cause == "noise" || cause == "waiting";
}
bool is_communication(std::string_view cause) {
  return cause.ends_with(" transfer") || cause == "bubble" || cause == "communication" ||
         is_waiting(cause);
}

/// Returns a function that maps the name of a cause to that of a more general cause if only one of
/// the waterfalls (lists of causes with the time lost to each) has the detail. With these names
/// both waterfalls are equally detailed.
auto names_in_both(const efficiency::Waterfall& a, const efficiency::Waterfall& b) {
  const bool gemms = has_cause(a, "GEMM overlap") != has_cause(b, "GEMM overlap");
  const bool waiting = has_cause(a, "waiting") != has_cause(b, "waiting");
  const bool communication = has_cause(a, "communication") || has_cause(b, "communication");
  return [=](const std::string& cause) -> std::string {
    if (gemms && is_gemm(cause)) return "GEMMs";
    if (communication && is_communication(cause)) return "communication";
    if (waiting && is_waiting(cause)) return "waiting";
    return cause;
  };
}

void add(std::vector<CausePart>& parts, const std::string& cause, double value) {
  const auto known = std::ranges::find(parts, cause, &CausePart::cause);
  if (known == parts.end()) {
    parts.push_back({.cause = cause, .value = value});
  } else {
    known->value += value;
  }
}

void add_notes(const efficiency::Waterfall& from, std::vector<std::string>& notes) {
  for (const std::string& sentence : from.missing) {
    if (std::ranges::find(notes, sentence) == notes.end()) notes.push_back(sentence);
  }
}

void explain_efficiency(const PointReport& first, const PointReport& here, Why& result) {
  const auto& a = first.causes.waterfall;
  const auto& b = here.causes.waterfall;
  if (!a || !b) {
    result.no_efficiency =
        "the causes need a breakdown of the step on both sides, here and at the baseline";
    return;
  }
  result.efficiency = above(efficiency_causes(*a, *b), least_shown);
  add_notes(*a, result.notes);
  add_notes(*b, result.notes);
}

void explain_step(const PointReport& first, const PointReport& here, Why& result) {
  const std::optional<efficiency::StepLoss> a = step_loss(first), b = step_loss(here);
  if (!a || !b) {
    result.no_step = "the causes need traced steps on both sides";
    result.step_first =
        first.step_time->median / first.data->work_per_step * here.data->work_per_step;
    result.step_here = here.step_time->median;
    return;
  }
  const efficiency::Waterfall between = efficiency::waterfall(*b, *a);
  result.step_first = between.ideal;
  result.step_here = between.measured;
  std::vector<CausePart> parts;
  for (const efficiency::LostTime& lost : between.lost) add(parts, lost.cause, lost.seconds);
  result.step = above(std::move(parts), least_shown * between.ideal);
  add_notes(between, result.notes);
}

Verdict verdict_of(const Difference& at) {
  if (!at.p_regression) return Verdict::one_launch;
  if (*at.p_regression <= statistics::beyond_one_end) return Verdict::regression;
  return *at.p_passed <= statistics::beyond_one_end ? Verdict::passed : Verdict::too_noisy;
}

/// For each launch of a side: one value for each point, the logarithm of the launch's throughput
/// minus the mean of that logarithm over the side's launches.
using Residuals = std::map<const RunReport*, std::vector<double>>;

double mean(const std::vector<double>& of) {
  return std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size());
}

/// Returns the mean logarithm of a point's throughputs over launches, and adds each launch's
/// difference from this mean to `residuals`.
double mean_log(std::span<const merge::LaunchPoint> launches, Residuals& residuals) {
  const std::vector<double> logs = log_throughputs(launches);
  const double middle = mean(logs);
  for (std::size_t i = 0; i < logs.size(); ++i) {
    residuals[launches[i].run].push_back(logs[i] - middle);
  }
  return middle;
}

/// Returns `value`, which is a side's mean over points, with the standard error that follows from
/// the scatter of the side's launches. Each launch has equal weight. Absent below 3 launches.
std::optional<statistics::Mean> over_launches(double value, const Residuals& residuals) {
  if (residuals.size() < least_launches) return std::nullopt;
  std::vector<double> of_launches;
  for (const auto& [run, of_points] : residuals) of_launches.push_back(mean(of_points));
  std::optional<statistics::Mean> result = statistics::mean_of(of_launches);
  if (result) result->value = value;
  return result;
}

/// Finds the cause that explains the largest share of the change in step time; all points have
/// equal weight. It finds none if the causes at some point are not known.
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
         !results::is_scaling_result(point_of(curve.sides[at.side]->curve, at.ranks)->labels);
}

}  // namespace

bool holds_value(const statistics::Located& at) {
  constexpr double rounding = 1e-9;
  const double within = rounding * (1 + std::abs(at.value));
  return !at.lower || (at.value >= *at.lower - within && at.value <= *at.upper + within);
}

bool is_established(const statistics::Located& at, double none) {
  return at.lower && (*at.upper < none || *at.lower > none) && holds_value(at);
}

PointLaunches point_launches(const SideCurve& of, int ranks, std::optional<int> baseline) {
  const auto launches = [&of](const PointReport* point) -> std::span<const merge::LaunchPoint> {
    if (point == nullptr) return {};
    return of.joined->launches[static_cast<std::size_t>(point - of.curve.points.data())];
  };
  const PointReport* const point = point_of(of.curve, ranks);
  const PointReport* const base = baseline ? point_of(of.curve, *baseline) : nullptr;
  return {point, launches(point), base, launches(base)};
}

Difference difference_between(const PointLaunches& first, const PointLaunches& here) {
  Difference result{.ranks = here.point->data->ranks,
                    .launches_first = first.launches.size(),
                    .launches = here.launches.size()};
  result.throughput.value = *here.point->throughput / *first.point->throughput;
  const auto of_first = log_throughput(first.launches), of_here = log_throughput(here.launches);
  if (of_first && of_here) {
    result.log_ratio = difference(*of_first, *of_here);
    set_interval(result.throughput, *result.log_ratio);
  }
  result.efficiency = efficiency_difference(first, here);
  result.verdict = without_gate(result.throughput);
  // A baseline has an efficiency of 1 by definition, so only its step time is explained.
  if (first.point != first.baseline) explain_efficiency(*first.point, *here.point, result.why);
  explain_step(*first.point, *here.point, result.why);
  return result;
}

std::vector<CausePart> efficiency_causes(const efficiency::Waterfall& here,
                                         const efficiency::Waterfall& there) {
  const auto name_of = names_in_both(here, there);
  std::vector<CausePart> parts;
  for (const efficiency::LostTime& lost : here.lost) {
    add(parts, name_of(lost.cause), -lost.seconds / here.measured);
  }
  for (const efficiency::LostTime& lost : there.lost) {
    add(parts, name_of(lost.cause), lost.seconds / there.measured);
  }
  return parts;
}

std::vector<CausePart> above(std::vector<CausePart> parts, double limit) {
  // The untraced part is no cause, so it stays apart from the other causes even if it is small.
  const auto is_small = [limit](const CausePart& at) {
    return at.cause == untraced_part ? at.value == 0 : std::abs(at.value) < limit;
  };
  double rest = 0;
  for (const CausePart& part : parts) {
    if (is_small(part)) rest += part.value;
  }
  std::erase_if(parts, is_small);
  std::ranges::stable_sort(parts, std::ranges::greater{},
                           [](const CausePart& at) { return std::abs(at.value); });
  if (rest != 0) parts.push_back({.cause = std::string{other_causes}, .value = rest});
  std::ranges::stable_partition(parts,
                                [](const CausePart& at) { return at.cause != untraced_part; });
  return parts;
}

Gate pass_through_gate(std::span<Difference> differences, double loss) {
  const double bound = std::log1p(-loss);
  std::vector<Difference*> tested;
  std::vector<double> larger, smaller;
  for (Difference& at : differences) {
    if (!at.log_ratio) continue;
    tested.push_back(&at);
    larger.push_back(p_below(*at.log_ratio, bound));
    smaller.push_back(p_above(*at.log_ratio, bound));
  }
  larger = statistics::holm(larger);
  smaller = statistics::holm(smaller);
  for (std::size_t i = 0; i < tested.size(); ++i) {
    tested[i]->p_regression = larger[i];
    tested[i]->p_passed = smaller[i];
  }
  std::map<Verdict, std::size_t> count;
  for (Difference& at : differences) {
    at.verdict = verdict_of(at);
    ++count[at.verdict];
  }
  return {.loss = loss,
          .tested = tested.size(),
          .regressions = count[Verdict::regression],
          .passed = count[Verdict::passed],
          .too_noisy = count[Verdict::too_noisy],
          .one_launch = count[Verdict::one_launch]};
}

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
      set_interval(at.throughput, difference(*mean_first, *mean_here));
    }
    find_cause(points, at);
  }
  return result;
}

}  // namespace isoscale::analysis::compare
