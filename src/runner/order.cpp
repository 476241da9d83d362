// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/order.hpp"

#include <algorithm>
#include <deque>
#include <utility>

namespace isoscale::runner {
namespace {

constexpr std::size_t ends = 2;  // points: the smallest count and the largest

/// The points of an experiment that are measured, and how many of them have had their turn.
struct Curve {
  const config::Experiment* experiment = nullptr;
  std::vector<int> points;  ///< as ends_then_middles() says
  std::size_t taken = 0;
};

std::vector<Curve> curves_of(const Plan& plan) {
  std::vector<Curve> curves;
  for (const PlannedPoint& point : plan.points) {
    if (!point.skip_reason.empty()) continue;
    if (curves.empty() || curves.back().experiment != point.experiment) {
      curves.push_back({.experiment = point.experiment, .points = {}});
    }
    curves.back().points.push_back(point.index);  // rank counts ascend
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

/// Whether the points show how a workload scales; those of micro-benchmarks do not.
bool scales(const Curve& curve) {
  return !workloads::find_workload(curve.experiment->workload).is_bench();
}

}  // namespace

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

}  // namespace isoscale::runner
