// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "analysis/causes/against_baseline.hpp"

namespace isoscale::analysis {
namespace {

using results::PointData;
using OptionMap = std::map<std::string, std::string>;

/// The options that all points of a curve share. Strong scaling holds the global batch and divides
/// it into fewer or smaller microbatches; weak scaling holds these and lets the batch grow.
OptionMap shared_options(const PointData& point) {
  OptionMap options = point.options;
  if (point.scaling == "weak") {
    options.erase("batch");
  } else {
    options.erase("microbatch");
    options.erase("microbatches");
  }
  return options;
}

auto family(const PointData& point) {
  return std::tie(point.workload, point.model, point.dtype, point.scaling, point.placement);
}

bool belongs(const Curve& curve, const PointData& point) {
  const PointData& first = *curve.points.front().data;
  return family(first) == family(point) && shared_options(first) == shared_options(point);
}

/// A second point of the same rank count (another mesh, say) opens a curve of its own.
bool has_ranks(const Curve& curve, int ranks) {
  return std::ranges::any_of(
      curve.points, [ranks](const PointReport& point) { return point.data->ranks == ranks; });
}

/// Options whose values differ between curves that would else have the same title.
std::set<std::string> telling_options(const std::vector<Curve>& curves, const PointData& of) {
  std::map<std::string, std::set<std::string>> values;
  for (const Curve& curve : curves) {
    const PointData& other = *curve.points.front().data;
    if (family(other) != family(of)) continue;
    for (const auto& [key, value] : shared_options(other)) values[key].insert(value);
  }
  std::set<std::string> telling;
  for (const auto& [key, seen] : values) {
    if (seen.size() > 1) telling.insert(key);
  }
  return telling;
}

std::string title(const std::vector<Curve>& curves, const Curve& curve) {
  const PointData& first = *curve.points.front().data;
  std::string text = fmt::format("{}, {}, {}, {} scaling, {}", first.workload, first.model,
                                 first.dtype, first.scaling, first.placement);
  const OptionMap options = shared_options(first);
  for (const std::string& key : telling_options(curves, first)) {
    if (const auto option = options.find(key); option != options.end()) {
      text += fmt::format(", {}={}", key, option->second);
    }
  }
  return text;
}

void set_against_baseline(Curve& curve, const ReportOptions& options) {
  const auto baseline = std::ranges::find_if(curve.points, [&options](const PointReport& point) {
    return point.throughput && (!options.baseline || point.data->ranks == *options.baseline);
  });
  if (baseline == curve.points.end()) return;
  curve.baseline = baseline->data->ranks;
  const double base_throughput = *baseline->throughput;
  for (PointReport& point : curve.points) {
    if (!point.throughput) continue;
    point.speedup = *point.throughput / base_throughput * *curve.baseline;
    point.efficiency = *point.speedup / point.data->ranks;
  }
  add_losses(curve, *baseline);
}

}  // namespace

std::vector<Curve> make_curves(std::vector<PointReport> points, const ReportOptions& options) {
  std::ranges::stable_sort(points, {}, [](const PointReport& at) { return at.data->index; });
  std::vector<Curve> curves;
  for (PointReport& point : points) {
    const auto last = std::find_if(curves.rbegin(), curves.rend(), [&point](const Curve& curve) {
      return belongs(curve, *point.data);
    });
    if (last != curves.rend() && !has_ranks(*last, point.data->ranks)) {
      last->points.push_back(std::move(point));
    } else {
      Curve& curve = curves.emplace_back();
      curve.points.push_back(std::move(point));
    }
  }
  for (Curve& curve : curves) {
    std::ranges::stable_sort(curve.points, {},
                             [](const PointReport& at) { return at.data->ranks; });
    curve.title = title(curves, curve);
    set_against_baseline(curve, options);
  }
  return curves;
}

}  // namespace isoscale::analysis
