// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "analysis/causes/against_baseline.hpp"
#include "analysis/labels.hpp"

namespace isoscale::analysis {
namespace {

/// A second point of the same rank count (another mesh, say) opens a curve of its own.
bool has_ranks(const Curve& curve, int ranks) {
  return std::ranges::any_of(
      curve.points, [ranks](const PointReport& point) { return point.data->ranks == ranks; });
}

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
        {.ranks = point.data->ranks, .shares_hardware = shares_hardware(point.labels)});
  }
  return baseline_ranks(candidates);
}

}  // namespace

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
  const std::string ranks =
      fmt::format("{} rank{}", *curve.baseline, *curve.baseline == 1 ? "" : "s");
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
  return baseline != nullptr && has_label(baseline->labels, few_steps);
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
    if (last != curves.rend() && !has_ranks(*last, point.data->ranks)) {
      last->points.push_back(std::move(point));
    } else {
      Curve& curve = curves.emplace_back();
      curve.points.push_back(std::move(point));
    }
  }
  std::vector<Experiment> experiments;
  for (Curve& curve : curves) {
    std::ranges::stable_sort(curve.points, {},
                             [](const PointReport& at) { return at.data->ranks; });
    experiments.push_back(experiment_of(curve));
    set_against_baseline(curve, options);
  }
  const std::vector<std::string> names = titles(experiments);
  for (std::size_t i = 0; i < curves.size(); ++i) curves[i].title = names[i];
  return curves;
}

}  // namespace isoscale::analysis
