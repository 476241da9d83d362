// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/lane_choice.hpp"

#include <algorithm>
#include <utility>

#include "analysis/breakdown/traced_steps.hpp"

namespace isoscale::analysis {
namespace {

using units::Nanoseconds;

std::vector<LaneStep> usable_steps(const results::PointData& point) {
  std::vector<LaneStep> steps;
  if (!missing_traces(point).empty()) return steps;
  for (const timeline::Timeline& timeline : point.traces) {
    if (!step_counts(point, timeline)) continue;
    LaneStep step;
    step.of.resize(static_cast<std::size_t>(point.ranks), nullptr);
    for (const timeline::StepTrace& trace : timeline.ranks) {
      if (check_trace(point, trace) != TraceState::usable) continue;
      step.of[static_cast<std::size_t>(trace.rank)] = &trace;
      step.step = trace.step;
      step.length = std::max(step.length, trace.end - trace.begin);
    }
    if (step.traced() > 0) steps.push_back(std::move(step));
  }
  return steps;
}

/// The traced rank for which `value` (of its index in the breakdown) is largest.
template <class Value>
std::optional<int> largest(const BreakdownResult& breakdown, const Value& value) {
  std::optional<int> found;
  double most = 0;
  for (std::size_t i = 0; i < std::min(breakdown.ranks.size(), breakdown.of_rank.size()); ++i) {
    if (value(i) <= most) continue;
    most = value(i);
    found = breakdown.ranks[i];
  }
  return found;
}

}  // namespace

std::size_t LaneStep::traced() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(of, [](const auto* trace) { return trace != nullptr; }));
}

std::optional<LaneStep> typical_traced_step(const results::PointData& point) {
  std::vector<LaneStep> steps = usable_steps(point);
  if (steps.empty()) return std::nullopt;
  const std::size_t most = std::ranges::max(steps, {}, &LaneStep::traced).traced();
  std::erase_if(steps, [most](const LaneStep& step) { return step.traced() < most; });
  std::ranges::stable_sort(steps, {}, &LaneStep::length);
  // Of an even number the faster one in the middle: both are as near.
  return std::move(steps[(steps.size() - 1) / 2]);
}

std::vector<int> lane_ranks(const PointReport& point, const LaneStep& step,
                            const DetailLimits& limits) {
  const results::PointData& data = *point.data;
  std::vector<int> ranks;
  const auto add = [&](std::optional<int> rank, std::size_t most) {
    const bool known = rank && *rank >= 0 && *rank < data.ranks;
    if (!known || ranks.size() >= most || step.of[static_cast<std::size_t>(*rank)] == nullptr) {
      return;
    }
    if (std::ranges::find(ranks, *rank) == ranks.end()) ranks.push_back(*rank);
  };
  for (int stage = 0; data.mesh.pp > 1 && stage < data.mesh.pp; ++stage) {
    add(mesh::rank_at(data.mesh, {.pp = stage}), limits.most_lanes);
  }
  const std::size_t most = std::min(limits.most_lanes, std::max(limits.fewest_lanes, ranks.size()));
  add(0, most);
  add(data.ranks - 1, most);
  const BreakdownResult& breakdown = point.breakdown;
  add(largest(breakdown, [&](std::size_t i) { return breakdown.of_rank[i].compute; }), most);
  add(largest(breakdown,
              [&](std::size_t i) {
                const auto rank = static_cast<std::size_t>(breakdown.ranks[i]);
                const auto& caused = breakdown.caused.of_rank;
                return rank < caused.size() ? caused[rank] : 0.0;
              }),
      most);
  // The rest from all over the point.
  const int others = static_cast<int>(most);
  for (int i = 0; i < others; ++i) add(i * data.ranks / others, most);
  for (int rank = 0; rank < data.ranks && ranks.size() < most; ++rank) add(rank, most);
  return ranks;
}

}  // namespace isoscale::analysis
