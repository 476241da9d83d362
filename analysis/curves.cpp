// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/curves.hpp"

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

/// The first that may be, of those whose time is well known where there are any.
const PointReport* baseline_of(const Curve& curve, const ReportOptions& options) {
  const PointReport* first = nullptr;
  for (const PointReport& point : curve.points) {
    if (!may_be_baseline(point, options)) continue;
    if (!has_label(point.labels, few_steps)) return &point;
    if (first == nullptr) first = &point;
  }
  return first;
}

}  // namespace

Experiment experiment_of(const Curve& curve) {
  const auto played = std::ranges::find_if(curve.points, [](const PointReport& point) {
    return point.data->status != results::PointStatus::skipped;
  });
  return experiment_of(played == curve.points.end() ? *curve.points.front().data : *played->data);
}

void set_against_baseline(Curve& curve, const ReportOptions& options) {
  const PointReport* const baseline = baseline_of(curve, options);
  if (baseline == nullptr) return;
  curve.baseline = baseline->data->ranks;
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
