// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/curves_and_baselines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "analysis/group_by.hpp"
#include "base/text.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis {
namespace {

bool may_be_baseline(const PointReport& point, const ReportOptions& options) {
  if (!point.throughput) return false;
  if (options.whole_node) return point.nodes && point.nodes->fills_node;
  return !options.baseline || point.data->ranks == *options.baseline;
}

std::optional<int> baseline_of(const Curve& curve, const ReportOptions& options) {
  std::vector<BaselineCandidate> candidates;
  for (const PointReport& point : curve.points) {
    if (!may_be_baseline(point, options)) continue;
    candidates.push_back(
        {.ranks = point.data->ranks, .shares_hardware = results::shares_hardware(point.labels)});
  }
  return baseline_ranks(candidates);
}

/// True if `text_of` differs for the points of two curves at a rank count that both have.
bool differ(const Curve& a, const Curve& b,
            const std::function<std::string(const PointReport&)>& text_of) {
  return std::ranges::any_of(a.points, [&](const PointReport& mine) {
    return std::ranges::any_of(b.points, [&](const PointReport& theirs) {
      return mine.data->ranks == theirs.data->ranks && text_of(mine) != text_of(theirs);
    });
  });
}

std::string microbatch_text(const PointReport& point) {
  const std::string size = option_of(*point.data, "microbatch");
  return size.empty() ? "" : "microbatch=" + size;
}

/// Returns sqrt(ln(of_point)^2 + ln(of_baseline)^2), a half-width of the interval of a speed-up's
/// logarithm (see add_losses). Each argument is the ratio upper bound / median or median / lower
/// bound of a step time. Ratios below 1 count as 1.
double in_quadrature(double of_point, double of_baseline) {
  return std::hypot(std::max(0.0, std::log(of_point)), std::max(0.0, std::log(of_baseline)));
}

/// Returns the speed-up of a point with its bounds; that of the baseline itself is exactly 1.
efficiency::ScalingPoint scaling_point(const PointReport& point, const PointReport& baseline) {
  efficiency::ScalingPoint result{
      .p = static_cast<double>(point.data->ranks) / baseline.data->ranks,
      .speedup = *point.throughput / *baseline.throughput};
  if (&point == &baseline) {
    result.lower = result.upper = result.speedup;
    return result;
  }
  const statistics::Estimate& mine = *point.step_time;
  const statistics::Estimate& base = *baseline.step_time;
  if (mine.lower && mine.upper && base.lower && base.upper) {
    const double below = in_quadrature(*mine.upper / mine.median, base.median / *base.lower);
    const double above = in_quadrature(mine.median / *mine.lower, *base.upper / base.median);
    result.lower = result.speedup * std::exp(-below);
    result.upper = result.speedup * std::exp(above);
  }
  return result;
}

/// Returns the interval of a point's speed-up as reports show it: multiplied by `worth`, the
/// speed-up that the baseline counts as (its rank count, or 1 if the baseline is one node).
std::optional<statistics::Located> interval_of(const efficiency::ScalingPoint& at, int worth) {
  if (!at.lower || !at.upper) return std::nullopt;
  return statistics::Located{
      .value = at.speedup * worth, .lower = *at.lower * worth, .upper = *at.upper * worth};
}

/// Returns the serial fraction of a point by Karp and Flatt if it is between 0 and 1 and its
/// interval is narrower than 1; absent otherwise, since other values have no meaning.
std::optional<statistics::Located> telling_fraction(const efficiency::ScalingPoint& at) {
  constexpr double rounding = 1e-9;
  const std::optional<statistics::Located> fraction = efficiency::karp_flatt(at);
  if (!fraction || !fraction->lower || !fraction->upper) return std::nullopt;
  const bool is_share = fraction->value >= -rounding && fraction->value <= 1 + rounding;
  return is_share && *fraction->upper - *fraction->lower < 1 ? fraction : std::nullopt;
}

/// Computes the losses of the points of a curve relative to `base` (one of these points), the
/// intervals of their speed-ups, and the scaling laws fitted to the curve. The errors of a point's
/// time t and of the baseline's time t0 are independent, so the 95% interval of ln(t0 / t) has
/// these half-widths:
///   below: sqrt(ln(t.upper / t)^2 + ln(t0 / t0.lower)^2)
///   above: sqrt(ln(t / t.lower)^2 + ln(t0.upper / t0)^2)
void add_losses(Curve& curve, const PointReport& base) {
  const std::optional<efficiency::StepLoss> ideal = step_loss(base);
  const std::optional<efficiency::UsefulWork> useful =
      efficiency::useful_work(*base.data, base.breakdown);
  std::vector<efficiency::ScalingPoint> scaling;
  const bool strong = base.data->scaling == "strong";
  for (PointReport& point : curve.points) {
    if (!point.throughput || !point.step_time) continue;
    const efficiency::ScalingPoint at = scaling_point(point, base);
    if (&point != &base) {
      point.speedup_interval = interval_of(at, curve.per_node ? 1 : *curve.baseline);
    }
    point.causes.pop = efficiency::pop(*point.data, point.breakdown, useful);
    // A serial fraction without an interval cannot be trusted, so it is not shown.
    if (results::is_scaling_result(point.labels)) {
      scaling.push_back(at);
      if (strong && at.lower) point.causes.serial_fraction = telling_fraction(at);
    }
    const std::optional<efficiency::StepLoss> loss = step_loss(point);
    if (loss && ideal && point.data->ranks != base.data->ranks) {
      point.causes.waterfall = efficiency::waterfall(*loss, *ideal);
      if (results::has_label(point.labels, results::few_steps) ||
          results::has_label(base.labels, results::few_steps)) {
        point.causes.waterfall->explains = false;
      }
    }
  }
  if (strong) curve.laws.amdahl = efficiency::amdahl(scaling);
  if (!strong) curve.laws.gustafson = efficiency::gustafson(scaling);
  curve.laws.usl = efficiency::usl(scaling);
}

}  // namespace

const PointReport* telling_point(const std::vector<const PointReport*>& points) {
  const PointReport* best = nullptr;
  const auto rank = [](const PointReport& at) {
    const int soundness = at.labels.empty() ? 2 : results::is_scaling_result(at.labels) ? 1 : 0;
    return std::pair{soundness, at.data->ranks};
  };
  for (const PointReport* const point : points) {
    if (point->data->status != results::PointStatus::ok) continue;
    if (best == nullptr || rank(*best) < rank(*point)) best = point;
  }
  return best;
}

const PointReport* telling_point(const Curve& curve) {
  std::vector<const PointReport*> others;
  for (const PointReport& point : curve.points) {
    if (point.throughput && curve.baseline != point.data->ranks) others.push_back(&point);
  }
  const PointReport* const point = telling_point(others);
  return point != nullptr ? point : baseline_point(curve);
}

void tell_apart(std::vector<std::string>& names, const std::vector<std::string>& bases,
                const std::vector<std::string>& texts) {
  std::map<std::string, std::set<std::string>> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!texts[i].empty()) seen[bases[i]].insert(texts[i]);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (seen[bases[i]].size() > 1 && !texts[i].empty()) names[i] += ", " + texts[i];
  }
}

void tell_apart(std::vector<std::string>& names, const std::vector<std::string>& bases,
                std::span<const Curve* const> curves,
                const std::function<std::string(const PointReport&)>& text_of) {
  std::vector<std::string> texts(curves.size());
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const PointReport* const point = telling_point(*curves[i]);
    if (point == nullptr) continue;
    for (std::size_t j = 0; j < curves.size() && texts[i].empty(); ++j) {
      if (bases[i] == bases[j] && differ(*curves[i], *curves[j], text_of)) {
        texts[i] = text_of(*point);
      }
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!texts[i].empty()) names[i] += ", " + texts[i];
  }
}

void tell_meshes_apart(std::vector<std::string>& names, std::span<const Curve* const> curves) {
  tell_apart(names, std::vector<std::string>{names}, curves,
             [](const PointReport& at) { return mesh::to_string(at.data->mesh); });
  tell_apart(names, std::vector<std::string>{names}, curves, microbatch_text);
}

void tell_repeats_apart(std::vector<std::string>& names) {
  std::map<std::string, int> times;
  for (std::string& name : names) {
    const int time = ++times[name];
    if (time > 1) name += fmt::format(", repeat {}", time);
  }
}

const PointReport* point_of(const Curve& curve, int ranks) {
  const auto found =
      std::ranges::find(curve.points, ranks, [](const PointReport& at) { return at.data->ranks; });
  return found == curve.points.end() ? nullptr : &*found;
}

Experiment experiment_of(const Curve& curve) {
  const auto played = std::ranges::find_if(curve.points, [](const PointReport& point) {
    return point.data->status != results::PointStatus::skipped;
  });
  return experiment_of(played == curve.points.end() ? *curve.points.front().data : *played->data);
}

std::optional<int> baseline_ranks(std::span<const BaselineCandidate> candidates) {
  if (candidates.empty()) return std::nullopt;
  const auto alone = std::ranges::find(candidates, false, &BaselineCandidate::shares_hardware);
  return alone == candidates.end() ? candidates.front().ranks : alone->ranks;
}

std::string baseline_name(const Curve& curve) {
  if (!curve.baseline) return "";
  const std::string ranks = base::counted(*curve.baseline, "rank");
  return curve.per_node ? "1 node of " + ranks : ranks;
}

const PointReport* baseline_point(const Curve& curve) {
  const auto found = std::ranges::find_if(curve.points, [&curve](const PointReport& point) {
    return point.throughput && point.data->ranks == curve.baseline;
  });
  return found == curve.points.end() ? nullptr : &*found;
}

bool has_unsure_baseline(const Curve& curve) {
  const PointReport* const baseline = baseline_point(curve);
  return baseline != nullptr && results::has_label(baseline->labels, results::few_steps);
}

std::optional<statistics::Located> efficiency_interval(const PointReport& point) {
  const auto& of_speedup = point.speedup_interval;
  if (!of_speedup || !of_speedup->lower || !of_speedup->upper || !point.efficiency) {
    return std::nullopt;
  }
  // The ideal speed-up: the number of ranks, or of nodes if the baseline is one node.
  const double ideal = *point.speedup / *point.efficiency;
  return statistics::Located{.value = *point.efficiency,
                             .lower = *of_speedup->lower / ideal,
                             .upper = *of_speedup->upper / ideal};
}

std::string nodes_text(const PointReport& point) {
  if (!point.nodes) return std::to_string(point.data->nodes);
  const results::NodeUse& use = *point.nodes;
  const std::string ranks = use.fewest == use.most ? std::to_string(use.most)
                                                   : fmt::format("{}-{}", use.fewest, use.most);
  return fmt::format("{} x {}", use.nodes, ranks);
}

std::optional<efficiency::StepLoss> step_loss(const PointReport& point) {
  if (!point.throughput || !point.step_time || !point.causes.costs || !point.traced_step) {
    return std::nullopt;
  }
  return efficiency::StepLoss{.step = point.step_time->median,
                              .traced = *point.traced_step,
                              .slowest = point.breakdown.slowest_step,
                              .work = point.data->work_per_step,
                              .ranks = point.data->ranks,
                              .costs = *point.causes.costs};
}

void set_throughput_unit(Curve& curve) {
  std::vector<double> growths;
  for (const PointReport& point : curve.points) growths.push_back(point.work_growth);
  for (PointReport& point : curve.points) {
    point.throughput_unit = throughput_unit(point.data->throughput_unit, growths);
  }
}

void set_against_baseline(Curve& curve, const ReportOptions& options) {
  curve.baseline = baseline_of(curve, options);
  const PointReport* const baseline = baseline_point(curve);
  if (baseline == nullptr) return;
  curve.per_node = options.whole_node;
  const double base_throughput = *baseline->throughput;
  for (PointReport& point : curve.points) {
    if (!point.throughput) continue;
    const double of_baseline = *point.throughput / base_throughput;
    const double of_one_rank = of_baseline * *curve.baseline;
    point.speedup = curve.per_node ? of_baseline : of_one_rank;
    point.efficiency = of_one_rank / point.data->ranks;
  }
  add_losses(curve, *baseline);
}

std::vector<Curve> make_curves(std::vector<PointReport> points, const ReportOptions& options) {
  std::ranges::stable_sort(points, {}, [](const PointReport& at) { return at.data->index; });
  std::vector<Curve> curves;
  for (PointReport& point : points) {
    const Experiment experiment = experiment_of(*point.data);
    const auto last = std::find_if(curves.rbegin(), curves.rend(), [&](const Curve& curve) {
      return are_alike(experiment_of(curve), experiment);
    });
    // A curve has one point for each rank count. A second point with the same count (with another
    // mesh, for example) starts a new curve.
    const bool fits = last != curves.rend() && point_of(*last, point.data->ranks) == nullptr;
    (fits ? *last : curves.emplace_back()).points.push_back(std::move(point));
  }
  std::vector<Experiment> experiments;
  for (Curve& curve : curves) {
    std::ranges::stable_sort(curve.points, {},
                             [](const PointReport& at) { return at.data->ranks; });
    experiments.push_back(experiment_of(curve));
    set_throughput_unit(curve);
    set_against_baseline(curve, options);
  }
  std::vector<std::string> names = titles(experiments);
  tell_meshes_apart(names, pointers_to(curves));
  tell_repeats_apart(names);
  for (std::size_t i = 0; i < curves.size(); ++i) curves[i].title = std::move(names[i]);
  return curves;
}

}  // namespace isoscale::analysis
